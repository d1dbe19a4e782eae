"""Names of PostgreSQL's tables without SQL: starts :mod:`.postgres_files` as the server's user."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from tierwise.capture.target import RecordingTarget
from tierwise.host import programs, python_process
from tierwise.host.users import ServerUser
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import STRICT, parse_as_model
from tierwise.model.names import group_by_key, printable
from tierwise.recording.relations import Kind, Relation, qualified_name

_NAME = "postgres-names"
_MODULE = "tierwise.capture.postgres_files"
_IDS = re.compile(r"^Uid:\t\d+\t(\d+).*\nGid:\t\d+\t(\d+)", re.MULTILINE)
_LONGEST_S = 30.0
_MOST_ANSWER_BYTES = 7 << 20
"""More than the reader writes of the largest catalog; a recording has room for it."""
_LONGEST_REASON = 200
_STATUS_BYTES = 4096
_FIX = "give a DSN instead, or later --names with a CSV file; see docs/how-to/tables.md"
_MOST_UNNAMED = 5
"""Databases without names that a sentence lists."""


@dataclass(frozen=True)
class RelationNames:
    """Tables and indexes as a recording has them, and sentences on what the files do not tell."""

    relations: list[dict[str, Any]]
    warnings: list[str]


def target_with_table_names(target: RecordingTarget) -> RecordingTarget:
    """A target whose recording reads the names of its tables from its files; they are read once as a test.

    Raises:
        TierwiseError: if that cannot be done.
    """
    if target.rules.counters != "postgresql":
        raise TierwiseError(
            f"--names-from-files: {target.rules.engine} is recorded, and the files are PostgreSQL's",
            "leave out the option",
        )
    read_names_as_server_user(target)
    return replace(target, names_from_files=True)


def read_names_as_server_user(target: RecordingTarget) -> RelationNames:
    """Names from the files of a running server, read with the rights of its user; nothing is written.

    Raises:
        TierwiseError: if they cannot be read.
    """
    directory, user = _directory_of(target.pid)
    try:
        command = python_process.unprivileged_python(
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
    answer = parse_as_model(_ReaderOutput, done.output, "--names-from-files: a damaged answer", _FIX)
    if answer.problem:
        raise _unreadable(answer.problem)
    return RelationNames([row.relation().model_dump() for row in answer.relations], _warnings(answer))


_CatalogName = Annotated[str, Field(min_length=1, max_length=64)]
_Names = tuple[_CatalogName, _CatalogName]
"""Schema and name."""
_Number = Annotated[int, Field(ge=0, lt=1 << 32)]


class _RelationRow(BaseModel):
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
            key: names and qualified_name(*names)
            for key, names in (("name", self.name), ("table", self.table), ("partitioned", self.partitioned))
        }
        return Relation(**(self.model_dump() | names))


class _ReaderOutput(BaseModel):
    """What the reader writes. Its files are the server's user's, who may write anything there."""

    model_config = STRICT

    problem: str = ""
    checkpoint_s: Annotated[int, Field(ge=0, lt=1 << 36)] = 0
    relations: list[_RelationRow] = []
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


def _warnings(answer: _ReaderOutput) -> list[str]:
    when = datetime.fromtimestamp(answer.checkpoint_s, UTC).isoformat(timespec="seconds")
    warnings = [
        "names of tables and indexes were read from the server's files, as of its checkpoint of "
        f"{when.replace('+00:00', 'Z')} or later: what was renamed since may have its old name, and what was "
        "made or rewritten since may have none"
    ]
    if answer.unknown:
        counted = numbers.counted_noun(answer.unknown, "table or index", "tables and indexes")
        warnings.append(f"{counted} of the catalog have no name here: the files do not tell it for certain")
    reasons = group_by_key((_sentence(reason), number) for number, reason in answer.unread.items())
    return warnings + [unnamed_databases_note(databases, reason) for reason, databases in reasons.items()]


def unnamed_databases_note(databases: Sequence[int], reason: str) -> str:
    """The sentence on databases without names for one reason."""
    return f"tables and indexes of the database{numbered_databases(databases)} have no names: {reason}"


def numbered_databases(databases: Sequence[int]) -> str:
    """The end of "database", and their numbers."""
    more = len(databases) - _MOST_UNNAMED
    listed = ", ".join(map(str, databases[:_MOST_UNNAMED])) + (f" and {more} more" if more > 0 else "")
    plural = "s" if len(databases) > 1 else ""
    return f"{plural} with pg_database.oid {listed}"


# The same over SQL.


def _qualified_name_sql(schema: str, name: str) -> str:
    """SQL for a name with its schema; one of the two that has a dot itself is in quotes."""
    first, second = (
        f"CASE WHEN strpos({part}, '.') > 0 THEN quote_ident({part}) ELSE {part} END"
        for part in (f"{schema}.nspname::text", f"{name}.relname::text")
    )
    return f"concat({first}, '.', {second})"


RELATIONS_SQL = f"""
    WITH named AS (
        SELECT c.oid, c.relkind AS kind, pg_relation_filepath(c.oid) AS path,
               {_qualified_name_sql("n", "c")} AS name, root, owner.oid AS table_oid,
               (SELECT sum(coalesce(pg_relation_size(c.oid, fork), 0))
                FROM unnest(ARRAY['main', 'fsm', 'vm']) AS fork)::bigint AS bytes
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_index i ON i.indexrelid = c.oid
        LEFT JOIN pg_class toasted ON toasted.reltoastrelid = coalesce(i.indrelid, c.oid)
        LEFT JOIN pg_class owner ON owner.oid = coalesce(toasted.oid, i.indrelid)
        LEFT JOIN LATERAL (SELECT pg_partition_root(coalesce(owner.oid, c.oid))::oid AS root) r ON true
        WHERE c.relkind IN ('r', 'm', 't', 'i') AND c.oid >= 16384 AND c.relpersistence <> 't'
    )
    SELECT path, named.name, CASE WHEN kind = 'm' THEN 'materialized view'
                                  WHEN owner.relkind IN ('r', 'm') AND n.nspname IS NOT NULL
                                       AND named.name LIKE 'pg_toast.%' THEN 'toast'
                                  WHEN kind = 'i' THEN 'index' ELSE 'table' END,
           {_qualified_name_sql("n", "owner")}, {_qualified_name_sql("m", "whole")}, bytes
    FROM named
    LEFT JOIN pg_class owner ON owner.oid = table_oid
    LEFT JOIN pg_namespace n ON n.oid = owner.relnamespace
    LEFT JOIN pg_class whole ON whole.oid = root AND root <> coalesce(table_oid, named.oid)
    LEFT JOIN pg_namespace m ON m.oid = whole.relnamespace
    WHERE path IS NOT NULL ORDER BY bytes DESC LIMIT {{}}
"""
"""Tables and indexes of the connected database, the largest first: a reading of the recorded files' names."""
