"""What the contract suite needs to know of an engine, and how its tests look at files from outside.

A new engine adds a module to ``tests/support/engine_cases`` with a list ``CASES``; nothing else changes.
The suite's few statements are written twice: :data:`SQL`, which every SQL engine here takes as it is, and
:data:`OBJECTS`, their twins for the dialect ``objects``. All work is done by the engine's own clients, so a
case needs no connection of its own.

What an engine cannot do is in its ``Engine.unsupported``, each with the reason. The suite checks that: the
keys are roles that it cannot place, fields of ``Counters`` that it cannot tell, ``memory`` and
``parallelism`` if it takes no such limit, ``space``, or a capability of the engine's own naming. A role that
is neither placed nor a gap fails, and so does a counter that is absent without being a gap, or a gap and
there all the same. ``EngineCase.unsupported`` names the tests that this makes impossible; they are
skipped with the reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.base import ConnectedClients, Engine, ResourceLimits
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

ROWS = 30_000
BODY_BYTES = 100
LIMITS = ResourceLimits(memory_bytes=384 << 20, parallelism=2, sessions=180)


@dataclass(frozen=True)
class Statements:
    """The suite's statements in one language."""

    schema: list[tuple[Role, str]]
    """Makes ``item (id, body)`` with an index on the body."""
    wrong: tuple[Role, str]
    """Names ``nowhere``, which is not there."""
    steps: Mapping[str, tuple[str, Any]]
    """Of each transaction: its statement, and what that adds to the checksum."""
    endless: tuple[str, int]
    """A transaction, and how many of it nobody would wait for."""


SQL = Statements(
    schema=[
        (Role.DATA, "CREATE TABLE item (id INTEGER NOT NULL, body VARCHAR(200))"),
        (Role.INDEX, "CREATE INDEX item_body ON item (body)"),
    ],
    wrong=(Role.DATA, "INSERT INTO nowhere VALUES (1)"),
    steps={
        "scan": ("SELECT id FROM item", {"column": "id"}),
        "insert": ("INSERT INTO item (id, body) VALUES (:id, :body)", {"parameter": "id"}),
        "get": ("SELECT id FROM item WHERE id = :id", {"column": "id"}),
        "update": ("UPDATE item SET body = :body WHERE id = :id", "rows"),
        "delete": ("DELETE FROM item WHERE id = :id", "rows"),
        "endless": ("SELECT count(*) FROM item a, item b, item c WHERE a.id + b.id + c.id < 0", None),
    },
    endless=("endless", 1),
)

OBJECTS = Statements(
    schema=[(Role.DATA, "OBJECT item KEY id FIELDS (id integer, body text) INDEXES (body)")],
    wrong=(Role.DATA, "INSERT nowhere (id) VALUES (1)"),
    steps={
        "scan": ("SCAN item", {"column": "id"}),
        "insert": ("INSERT item (id, body) VALUES (:id, :body)", {"parameter": "id"}),
        "get": ("GET item (id) VALUES (:id)", {"column": "id"}),
        "update": ("UPDATE item (body) VALUES (:body) KEY (:id)", "rows"),
        "delete": ("DELETE item KEY (:id)", "rows"),
    },
    endless=("scan", 1_000_000),
)


@dataclass(frozen=True)
class EngineCase:
    """One engine: its language, settings that show, and what it does not do."""

    name: str
    setting: tuple[str, str, str]
    """A setting, a value to give it, and how the engine shows that."""
    bad_value: tuple[str, str]
    shown_limits: Mapping[str, str]
    """Settings that :data:`LIMITS` decides, as the engine shows them."""
    statements: Statements = SQL
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Tests that cannot be passed, each with the key of ``Engine.unsupported`` that says why."""

    def create(self, *, plain: bool = True) -> Engine:
        """The engine with its defaults, or with the case's setting and limits."""
        engine = engines.create_engine(self.name, {} if plain else {self.setting[0]: self.setting[1]})
        engine.limits = ResourceLimits() if plain else LIMITS
        return engine

    def missing(self) -> str | None:
        """Why the engine is not here, if it is not."""
        try:
            engines.create_engine(self.name)
        except TierwiseError as error:
            return str(error)
        return None

    def reason(self, test: str) -> str | None:
        """Why the engine cannot pass a test, in its own words; ``None`` if it can."""
        return self.create().unsupported[self.unsupported[test]] if test in self.unsupported else None

    def program(self, *, rows: int = ROWS, first: int = 1) -> str:
        """All transactions; ``id`` is drawn from ``first`` on."""
        number = {"kind": "counter", "start": 1, "divide": 1, "modulo": None}
        text = {"kind": "text", "low": BODY_BYTES, "high": BODY_BYTES}
        sequence = {"kind": "sequence", "start": first, "after": None, "global": True}
        return json.dumps(
            {
                "name": "contract",
                "think_ms": 0,
                "tables": [{"name": "item", "rows": rows, "columns": named(id=number, body=text)}],
                "parameters": named(id=sequence, body=text),
                "transactions": [
                    {"name": name, "weight": 1, "autocommit": False, "steps": [step(sql, what)]}
                    for name, (sql, what) in self.statements.steps.items()
                ],
            }
        )

    def fill(self, engine: Engine, rows: int = ROWS) -> None:
        engine.execute_schema(self.statements.schema)
        assert engine.load_tables(self.program(rows=rows), seed=1) == rows
        engine.checkpoint()


def named(**generators: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "generator": generator} for name, generator in generators.items()]


def step(sql: str, what: Any) -> dict[str, Any]:
    return {"repeat": 1, "draw": [], "sql": [sql], "sum": what}


class Load:
    """Connected clients of one case, lap by lap."""

    def __init__(self, case: EngineCase, engine: Engine, *, clients: int = 1, first: int = 1) -> None:
        self.clients: ConnectedClients = engine.clients(case.program(first=first), clients, seed=7)

    def lap(self, name: str, transactions: int = 1, cap_s: float | None = None) -> dict[str, Any]:
        report = self.clients.run(transactions, transaction=name, cap_s=cap_s)
        facts: dict[str, Any] = json.loads(report)
        return facts

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self.clients.close()


def rows_of(case: EngineCase, engine: Engine) -> int:
    """How many rows a scan finds; each id must be there once, from 1 on."""
    with Load(case, engine) as load:
        lap = load.lap("scan")
    assert lap["checksum"] == lap["rows"] * (lap["rows"] + 1) // 2
    return int(lap["rows"])


def until(holds: Callable[[], object]) -> None:
    """Wait for what must come, for longer than the slowest machine takes."""
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def wait_until_down(engine: Engine) -> None:
    until(lambda: not engine.running)


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
    return sum(status.st_blocks * 512 for status in _files_under(path).values())


def files_under(path: Path) -> list[Path]:
    """Files below a folder, links left out, also while a server makes and removes some."""
    return list(_files_under(path))


def _files_under(path: Path) -> dict[Path, os.stat_result]:
    found = {}
    for folder, _, names in os.walk(path):
        for file in (Path(folder, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISREG((status := file.lstat()).st_mode):
                    found[file] = status
    return found


def resident_pages(path: Path) -> int:
    """Pages of the files under ``path`` that are in the page cache, by mincore(2)."""
    pages = 0
    for file in files_under(path):
        with contextlib.suppress(FileNotFoundError):
            pages += _resident_pages_of(file)
    return pages


def _resident_pages_of(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR)
    try:
        if (size := os.fstat(descriptor).st_size) == 0:
            return 0
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
    mine = ledger.ProcessIdentity.mine()
    return {f"{entry.kind} {entry.name}" for entry in ledger.entries() if entry.owner == mine}
