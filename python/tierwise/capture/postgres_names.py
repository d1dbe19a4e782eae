"""Names of PostgreSQL's tables without SQL: starts :mod:`.postgres_files` as the server's user."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tierwise.capture.postgres import without_names
from tierwise.capture.target import Target
from tierwise.host import interpreter, programs
from tierwise.host.users import ServerUser
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.recording.relations import Relation, dotted

_NAME = "postgres-names"
_MODULE = "tierwise.capture.postgres_files"
_IDS = re.compile(r"^Uid:\t\d+\t(\d+).*\nGid:\t\d+\t(\d+)", re.MULTILINE)
_LONGEST_S = 30.0
_FIX = "give a DSN instead, or later --names with a CSV file; see docs/how-to/tables.md"


@dataclass(frozen=True)
class FileNames:
    """Tables and indexes as a recording has them, and sentences on what the files do not tell."""

    relations: list[dict[str, Any]]
    warnings: list[str]


def with_names(target: Target) -> Target:
    """A target whose recording reads the names of its tables from its files; they are read once as a test.

    Raises:
        TierwiseError: if that cannot be done.
    """
    if target.rules.counters != "postgresql":
        raise TierwiseError(
            f"--names-from-files: {target.rules.engine} is recorded, and the files are PostgreSQL's",
            "leave out the option",
        )
    read_names(target)
    return replace(target, names_from_files=True)


def read_names(target: Target) -> FileNames:
    """Names from the files of a running server, read with the rights of its user; nothing is written.

    Raises:
        TierwiseError: if they cannot be read.
    """
    try:
        directory = os.open(f"/proc/{target.pid}/cwd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(f"its data directory: {error.strerror}") from None
    try:
        command = interpreter.unprivileged(
            _NAME,
            f"from {_MODULE} import main; main()",
            [str(directory)],
            imports=[_MODULE],
            user=_user_of(target.pid),
        )
        done = programs.run(_NAME, command, timeout_s=_LONGEST_S, descriptors=[directory])
    finally:
        os.close(directory)
    try:
        answer = json.loads(done.output)
    except ValueError:
        raise _unreadable(done.last_line) from None
    try:
        if "problem" in answer:
            raise _unreadable(str(answer["problem"]))
        return FileNames([_relation(row) for row in answer["relations"]], list(_warnings(answer)))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        # The server's user can reach the process that answers.
        raise _unreadable("what read them gave a damaged answer") from None


def _user_of(pid: int | None) -> ServerUser | None:
    """The account that a server runs as."""
    if os.geteuid() != 0:
        return None
    ids = _IDS.search(Path(f"/proc/{pid}/status").read_text("utf-8", "replace"))
    if ids is None or ids[1] == "0":
        raise _unreadable("it runs as root")
    return ServerUser(ids[1], int(ids[1]), int(ids[2]))


def _unreadable(why: str) -> TierwiseError:
    return TierwiseError(f"--names-from-files: the server's files give no names: {why}", _FIX)


def _relation(row: dict[str, Any]) -> dict[str, Any]:
    names = {key: row[key] and dotted(*row[key]) for key in ("name", "table", "partitioned")}
    return Relation(**(row | names)).model_dump()


def _warnings(answer: dict[str, Any]) -> list[str]:
    when = datetime.fromtimestamp(answer["checkpoint_s"], UTC).isoformat(timespec="seconds")
    warnings = [
        "names of tables and indexes were read from the server's files, as of its checkpoint of "
        f"{when.replace('+00:00', 'Z')} or later: what was renamed since may have its old name, and what was "
        "made or rewritten since may have none"
    ]
    if answer["unknown"]:
        counted = numbers.counted(answer["unknown"], "table or index", "tables and indexes")
        warnings.append(f"{counted} of the catalog have no name here: the files do not tell it for certain")
    reasons: dict[str, list[int]] = {}
    for number, reason in answer["unread"].items():
        reasons.setdefault(reason, []).append(int(number))
    return warnings + [without_names(databases, reason) for reason, databases in reasons.items()]
