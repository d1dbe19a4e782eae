"""PostgreSQL's error messages as one line with a fix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tierwise.model.errors import TierwiseError

_GRAVE = re.compile(
    r"(?:PANIC|FATAL):\s+(.*)|(?:initdb: error: |LOG:\s+(?=.* was terminated by signal))(.*)"
    r"|.*(No space left on device).*"
)
_HARMLESS = re.compile(
    r"the database system is (starting up|shutting down|not yet accepting connections)"
    r"|connection to client lost|terminating (connection|walsender process) due to administrator command"
)
"""Messages about sessions that connect too early or too late, or disconnect: they report no loss."""

_ABORTED = re.compile(r"was terminated by signal 6\b")
_UNKNOWN = re.compile(r'unrecognized configuration parameter "(?P<name>[^"]*)"')
_HINT = re.compile(r"HINT:\s+(.*)")
_BAD_VALUE = re.compile(
    r'(?:invalid value for parameter|parameter|invalid|.* valid range for parameter) "(?P<name>\w+)".*'
)

_FIXES: Sequence[tuple[str, str]] = (
    (r"No space left on device|disk full", "give the device of that role more space, or load less"),
    (r"Address already in use|could not create any", "stop the other server, or choose another port"),
    (r'lock file "[^"]*" already exists', "stop the server that uses it, or choose another port"),
    (r"Permission denied|not permitted", "let the user of the server enter the directory: chmod o+x"),
    (r"shared memory|Cannot allocate memory|out of memory", "ask for less memory, as shared_buffers"),
)
"""Fixes by a pattern of the message; the first match counts."""


def grave_lines(log: str) -> list[str]:
    """Messages of a server's or initdb's log that report a loss, oldest first."""
    found = (_GRAVE.search(line) for line in log.splitlines())
    told = [next(part for part in (*match.groups()[:2], match.group()) if part) for match in found if match]
    return [message for message in told if not _HARMLESS.match(message)]


def explain(what: str, log: str) -> TierwiseError:
    """The error to raise when a program of PostgreSQL failed with this log.

    Args:
        what: the failed action, such as ``engine postgres cannot start``.
    """
    told = grave_lines(log) or log.strip().splitlines() or ["no message"]
    # After a PANIC the server also reports that the process has aborted.
    last = told[-2] if len(told) > 1 and _ABORTED.search(told[-1]) else told[-1]
    if unknown := _UNKNOWN.search(last):
        message = f"{what}: setting {unknown['name']} is unknown to this server"
        return TierwiseError(message, "leave it out, or use a version that has it")
    if bad := _BAD_VALUE.match(last):
        fix = ". ".join(["choose a value that the server takes", *_HINT.findall(log)[-1:]])
        return TierwiseError(f"{what}: setting {bad['name']}: {last}", fix.removesuffix("."))
    return TierwiseError(f"{what}: {last}", fix_for(last))


def fix_for(message: str) -> str:
    """The user's fix for a message of the server."""
    for pattern, fix in _FIXES:
        if re.search(pattern, message):
            return fix
    return "mend what the message names"
