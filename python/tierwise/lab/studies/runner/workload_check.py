"""Checks a workload: loads it at a small scale and runs each transaction or lap on its own database."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.workloads import Workload
from tierwise.lab.workloads.program import Lap, Program, RoleSql
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import make_new_folder
from tierwise.model.placement import Role
from tierwise.model.units import significant_text
from tierwise.results.result_schema import CheckOutcome

SCALES = (0.01, 0.1, 1.0)
"""Scales tried in this order if none is given: some workloads have no rows at the smallest."""
_CAP_S = 10.0
_LEAVE_BYTES = 2 << 30
_LEAVE_SHARE = 0.1
_LOOK_S = 0.1
_SEED = 1


def least_workable_scale(workload: Workload, dialect: str) -> tuple[float, Program]:
    """The least scale at which the workload makes sense."""
    for scale in SCALES[:-1]:
        try:
            return scale, workload.resolve(scale, dialect=dialect)
        except TierwiseError:
            continue
    return SCALES[-1], workload.resolve(SCALES[-1], dialect=dialect)


def check_on_new_database(
    workload: Workload, engine_name: str, scale: float | None = None
) -> Iterator[CheckOutcome]:
    """Create, load and run a workload on a new database in a temporary directory, which is deleted.

    A failure that prevents the next step, such as that of a schema statement, ends the check. So does a
    database that would fill the file system of the temporary directory.

    Args:
        scale: if not given, the smallest one that makes sense.
    """
    with ExitStack() as undo:
        engine = engines.create_engine(engine_name)
        if scale is None:
            scale, program = least_workable_scale(workload, engine.dialect)
        else:
            program = workload.resolve(scale, dialect=engine.dialect)
        yield CheckOutcome(
            name="resolve", note=f"scale {scale:g}, dialect {engine.dialect}: {_contents(program)}"
        )
        place = undo.enter_context(ledger.make_directory("tierwise-check", mode=0o711)) / "database"
        make_new_folder(place, 0o711)
        undo.enter_context(engine)
        engine.init({Role.SYSTEM: place})
        engine.start()
        space = undo.enter_context(_SpaceGuard(engine, place))
        for tried in check_on_engine(engine, workload, program):
            if space.problem:
                yield CheckOutcome(name=tried.name, problem=space.problem)
                return
            yield tried


class _SpaceGuard:
    """Ends an engine before its files fill their file system, which other programs need too."""

    def __init__(self, engine: Engine, place: Path) -> None:
        self._engine, self._place = engine, place
        self._ended = Event()
        self._thread = Thread(target=self._watch, name="space", daemon=True)
        self.problem: str | None = None

    def __enter__(self) -> _SpaceGuard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S):
            usage = shutil.disk_usage(self._place)
            least_bytes = min(_LEAVE_BYTES, _LEAVE_SHARE * usage.total)
            if usage.free < least_bytes:
                self.problem = (
                    f"stopped: less than {significant_text(least_bytes / (1 << 20))} MiB of the file system "
                    f"of {self._place.parent.parent} are left: load less with --scale, or set another TMPDIR"
                )
                self._engine.abort()
                return


def check_on_engine(engine: Engine, workload: Workload, program: Program) -> Iterator[CheckOutcome]:
    """Check the workload on a running engine that has none of its tables."""
    for step in _prepare(engine, workload, program):
        yield step
        if step.problem:
            return
    for lap in _laps(program):
        yield _run(engine, program, lap)


def _contents(program: Program) -> str:
    content = json.loads(program.json)
    parts = [numbers.counted_noun(len(content[f"{noun}s"]), noun) for noun in ("table", "transaction")]
    return ", ".join([*parts, *([numbers.counted_noun(len(program.laps), "lap")] if program.laps else [])])


def _prepare(engine: Engine, workload: Workload, program: Program) -> Iterator[CheckOutcome]:
    yield _schema(engine, "schema", program.schema, workload)
    try:
        rows = engine.load_tables(program.json, _SEED)
        yield CheckOutcome(name="load", note=f"{rows:,} rows")
    except TierwiseError as error:
        yield CheckOutcome(name="load", problem=str(error))
        return
    yield _schema(engine, "after_load", program.after_load, workload)


def _schema(engine: Engine, name: str, statements: RoleSql, workload: Workload) -> CheckOutcome:
    """Execute statements one by one, to identify the one that fails."""
    for role, sql in statements:
        try:
            engine.execute_schema([(role, sql)])
        except TierwiseError as error:
            file = workload.file if workload.spec.objects else workload.folder / f"{name}.sql"
            return CheckOutcome(name=name, problem=f"{file}: {' '.join(sql.split())}: {error}")
    return CheckOutcome(name=name, note=numbers.counted_noun(len(statements), "statement"))


def _laps(program: Program) -> list[Lap]:
    """Run the program's laps, or each transaction of a mix once, after the load."""
    laps = program.laps
    if not laps:
        transactions = json.loads(program.json)["transactions"]
        laps = [Lap(transaction["name"], transaction=transaction["name"]) for transaction in transactions]
    return [lap for lap in laps if lap.load is None]


def _run(engine: Engine, program: Program, lap: Lap) -> CheckOutcome:
    name = f"lap {lap.name}" if program.stages else f"transaction {lap.name}"
    try:
        if lap.statement is not None:
            engine.execute_schema([lap.statement])
            return CheckOutcome(name=name, note="1 statement")
        if "cold" in lap.before:
            engine.restart_cold()
        clients = engine.clients(program.json, lap.clients, _SEED)
        try:
            report = json.loads(clients.run(lap.count, transaction=lap.transaction, cap_s=_CAP_S))
        finally:
            clients.close()
    except TierwiseError as error:
        return CheckOutcome(name=name, problem=str(error))
    if report["capped"]:
        return CheckOutcome(name=name, note=f"stopped after {_CAP_S:g} s")
    if lap.checksum is not None and report["checksum"] != lap.checksum:
        return CheckOutcome(name=name, problem=f"checksum {report['checksum']} in place of {lap.checksum}")
    checked = "" if lap.checksum is None else f", checksum {lap.checksum}"
    return CheckOutcome(
        name=name, note=f"{report['transactions']} transactions, {report['rows']} rows{checked}"
    )
