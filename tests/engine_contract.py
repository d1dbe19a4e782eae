"""What the contract suite needs to know of an engine, and how its tests look at files from outside.

A new engine adds one :class:`EngineCase` to ``CASES``. What it cannot do is a gap with its reason: the test
of that name is then skipped with it, and a gap that names no test fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tierwise import engines
from tierwise.engines.base import Engine
from tierwise.errors import TierwiseError
from tierwise.host import ledger
from tierwise.roles import Role


@dataclass(frozen=True)
class EngineCase:
    """One engine: how a client of it works, a setting that shows, and what it does not do."""

    name: str
    connect: Callable[[Engine], contextlib.AbstractContextManager[Callable[[str], list[Any]]]]
    """Opens a session of the load; calling it with SQL gives the rows."""
    setting: tuple[str, str, str]
    """A setting, a value to give it, and how the server shows that."""
    bad_value: tuple[str, str]
    gaps: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> str | None:
        """Why the engine is not here, if it is not."""
        try:
            engines.create(self.name)
        except TierwiseError as error:
            return str(error)
        return None


@contextlib.contextmanager
def postgres_client(engine: Engine) -> Iterator[Callable[[str], list[Any]]]:
    with psycopg.connect(engine.dsn(), autocommit=True, application_name="tierwise-client") as connection:

        def run(sql: str) -> list[Any]:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

        yield run


CASES = [
    EngineCase(
        name,
        connect=postgres_client,
        setting=("work_mem", "3MB", "3MB"),
        bad_value=("shared_buffers", "many"),
    )
    for name in ("postgres", "postgres-system")
]

ROWS = 50_000
SCHEMA = [
    (Role.DATA, "CREATE TABLE item (id INTEGER NOT NULL, body VARCHAR(200))"),
    (Role.INDEX, "CREATE INDEX item_body ON item (body)"),
]
FILL = (
    "INSERT INTO item WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
    "SELECT i, 'a body of some length, to fill pages, number ' || i FROM n"
)


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """A temporary directory that any user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="tierwise-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def places_in(directory: Path, roles: frozenset[Role]) -> dict[Role, Path]:
    """A place of its own for each role, as the root of a new ext4 file system looks."""
    places = {role: directory / role for role in roles}
    for place in places.values():
        (place / "lost+found").mkdir(parents=True)
    return places


def bytes_under(path: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in files_under(path))


def files_under(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]


def resident_pages(path: Path) -> int:
    """Pages of the files under ``path`` that are in the page cache, by mincore(2)."""
    return sum(_resident_pages_of(file) for file in files_under(path))


def _resident_pages_of(file: Path) -> int:
    size = file.stat().st_size
    if size == 0:
        return 0
    descriptor = os.open(file, os.O_RDWR)
    try:
        with mmap.mmap(descriptor, size, access=mmap.ACCESS_WRITE) as mapped:
            seen = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
            window = (ctypes.c_char * size).from_buffer(mapped)
            failed = ctypes.CDLL(None, use_errno=True).mincore(window, ctypes.c_size_t(size), seen)
            del window
            assert failed == 0, os.strerror(ctypes.get_errno())
            return sum(flags & 1 for flags in seen)
    finally:
        os.close(descriptor)


def ledger_names() -> set[str]:
    """Entries of this process: what it holds and has not given back."""
    mine = ledger.Identity.mine()
    return {f"{entry.kind} {entry.name}" for entry in ledger.entries() if entry.owner == mine}
