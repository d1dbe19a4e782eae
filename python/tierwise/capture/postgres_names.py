"""Names of PostgreSQL's tables without SQL: starts :mod:`.postgres_files` as the server's user."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from tierwise.capture.postgres import without_names
from tierwise.capture.target import Target
from tierwise.host import interpreter, programs
from tierwise.host.users import ServerUser
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import STRICT, validated
from tierwise.model.names import gathered, printable
from tierwise.recording.relations import Kind, Relation, dotted

_NAME = "postgres-names"
_MODULE = "tierwise.capture.postgres_files"
_IDS = re.compile(r"^Uid:\t\d+\t(\d+).*\nGid:\t\d+\t(\d+)", re.MULTILINE)
_LONGEST_S = 30.0
_MOST_ANSWER_BYTES = 7 << 20
"""More than the reader writes of the largest catalog; a recording has room for it."""
_LONGEST_REASON = 200
_STATUS_BYTES = 4096
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
    directory, user = _directory_of(target.pid)
    try:
        command = interpreter.unprivileged(
            _NAME, f"from {_MODULE} import main; main()", [str(directory)], imports=[_MODULE], user=user
        )
        done = programs.run(_NAME, command, timeout_s=_LONGEST_S, descriptors=[directory])
    except TierwiseError as error:
        raise _unreadable(error.message) from None
    finally:
        os.close(directory)
    if done.status != 0:
        raise _unreadable(done.last_line)
    if len(done.output) > _MOST_ANSWER_BYTES:
        raise _unreadable(f"what read them wrote more than {_MOST_ANSWER_BYTES >> 20} MiB")
    answer = validated(_Answer, done.output, "--names-from-files: a damaged answer", _FIX)
    if answer.problem:
        raise _unreadable(answer.problem)
    return FileNames([row.relation().model_dump() for row in answer.relations], _warnings(answer))


_CatalogName = Annotated[str, Field(min_length=1, max_length=64)]
_Names = tuple[_CatalogName, _CatalogName]
"""Schema and name."""
_Number = Annotated[int, Field(ge=0, lt=1 << 32)]


class _Row(BaseModel):
    model_config = STRICT

    path: Annotated[str, Field(min_length=1, max_length=200)]
    name: _Names
    kind: Kind
    table: _Names | None
    partitioned: _Names | None
    database: _CatalogName
    size_bytes: Annotated[int, Field(ge=0, lt=1 << 63)]

    def relation(self) -> Relation:
        """As a recording has it."""
        names = {
            key: names and dotted(*names)
            for key, names in (("name", self.name), ("table", self.table), ("partitioned", self.partitioned))
        }
        return Relation(**(self.model_dump() | names))


class _Answer(BaseModel):
    """What the reader writes. Its files are the server's user's, who may write anything there."""

    model_config = STRICT

    problem: str = ""
    checkpoint_s: Annotated[int, Field(ge=0, lt=1 << 36)] = 0
    relations: list[_Row] = []
    unknown: _Number = 0
    unread: Annotated[dict[_Number, str], Field(max_length=10_000)] = {}


def _directory_of(pid: int | None) -> tuple[int, ServerUser | None]:
    """A descriptor of a server's data directory, and the account that the server runs as."""
    try:
        process = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise _unreadable("it has ended") from None
    try:  # by its descriptor: another process may get its number
        user = _user_of(process)
        return os.open("cwd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=process), user
    except OSError as error:
        raise _unreadable(f"its data directory: {error.strerror}") from None
    finally:
        os.close(process)


def _user_of(process: int) -> ServerUser | None:
    if os.geteuid() != 0:
        return None
    status = os.open("status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)
    try:
        ids = _IDS.search(os.read(status, _STATUS_BYTES).decode("utf-8", "replace"))
    finally:
        os.close(status)
    if ids is None or ids[1] == "0":
        raise _unreadable("it runs as root")
    return ServerUser(ids[1], int(ids[1]), int(ids[2]))


def _unreadable(why: str) -> TierwiseError:
    return TierwiseError(f"--names-from-files: the server's files give no names: {_sentence(why)}", _FIX)


def _sentence(text: str) -> str:
    return printable(text[:_LONGEST_REASON])


def _warnings(answer: _Answer) -> list[str]:
    when = datetime.fromtimestamp(answer.checkpoint_s, UTC).isoformat(timespec="seconds")
    warnings = [
        "names of tables and indexes were read from the server's files, as of its checkpoint of "
        f"{when.replace('+00:00', 'Z')} or later: what was renamed since may have its old name, and what was "
        "made or rewritten since may have none"
    ]
    if answer.unknown:
        counted = numbers.counted(answer.unknown, "table or index", "tables and indexes")
        warnings.append(f"{counted} of the catalog have no name here: the files do not tell it for certain")
    reasons = gathered((_sentence(reason), number) for number, reason in answer.unread.items())
    return warnings + [without_names(databases, reason) for reason, databases in reasons.items()]
