"""A PostgreSQL with a workload on emulated disks, for benchmarks that record, observe or measure it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tierwise.capture.record import RecordingSession
from tierwise.capture.schedule import BurstSchedule
from tierwise.host.cgroups import MemoryLimit
from tierwise.lab import engines
from tierwise.lab.engines.base import ConnectedClients, ResourceLimits
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.engines.postgres.server import CLIENT
from tierwise.lab.studies import parse_study
from tierwise.lab.studies.runner.run_recording import RunRecording, recording_target
from tierwise.lab.studies.runner.run_storage import RunStorage, open_storage
from tierwise.lab.studies.study import Study, plan_runs
from tierwise.lab.workloads import Workload
from tierwise.model.placement import Role

DUTY = 0.2
WARM_UP_S = 3.0


@dataclass(frozen=True)
class Case:
    """A workload on some devices: those of the log, and of everything else."""

    name: str
    workload: str
    clients: int
    log: str
    rest: str
    scale: float = 1.0
    memory: str | None = None
    settings: str = ""

    def study(self) -> Study:
        """The same as a study of one placement, whose devices the runner makes."""
        devices = {self.log: "log", self.rest: "rest"}
        named = "".join(f'[devices.{name}]\nprofile = "{device}"\n' for device, name in devices.items())
        memory = f'memory = "{self.memory}"\n' if self.memory else ""
        return parse_study(
            f'name = "{self.name}"\nquestion = "?"\nengines = ["postgres"]\nworkload = "{self.workload}"\n'
            f'repeats = 1\nbaseline = "one"\nclients = {self.clients}\nscale = {self.scale}\nseconds = 1\n'
            f"{memory}[settings.postgres]\n{self.settings}\n{named}"
            f'[placements.one]\nlog = "{devices[self.log]}"\ndefault = "{devices[self.rest]}"\n',
            f"{self.name}.toml",
        )


def recorded(
    engine: PostgresEngine, storage: RunStorage, clients: ConnectedClients, out: Path, seconds: float
) -> None:
    """Record the clients' work for so many seconds."""
    target = recording_target(engine, storage)
    with RecordingSession(target, out, BurstSchedule(None, DUTY, 0.5), lambda _: None) as session:
        recording = RunRecording(session, whole=False)
        recording.begin()
        content = json.loads(clients.run(None, seconds))
        recording.end(content["elapsed_s"])
        recording.finish(None)


@contextmanager
def running(
    case: Case, log_at: Path | None = None
) -> Iterator[tuple[PostgresEngine, RunStorage, ConnectedClients]]:
    """The workload's database on its devices, warmed up, with its clients; ``log_at``: its log lies there."""
    study = case.study()
    plan = plan_runs(study, 1)[0]
    with ExitStack() as undo:
        engine = engines.create_engine("postgres", study.settings.get("postgres", {}))
        assert isinstance(engine, PostgresEngine)
        program = Workload.load(study.workload).resolve(study.scale, study.constants, engine.dialect)
        engine.limits = ResourceLimits(study.memory, study.parallelism, study.clients)
        if study.memory is not None:
            engine.confinement = undo.enter_context(MemoryLimit.make(study.memory))
        storage = open_storage(study, plan, engine.roles, undo, by_role=True)
        undo.enter_context(engine)
        storage.set_timing(False)
        undo.callback(storage.set_timing, False)
        log = {} if log_at is None else {Role.LOG: log_at}
        engine.init(storage.places | log)
        engine.start()
        allow_observer(engine)
        engine.execute_schema(program.schema)
        engine.load_tables(program.json, plan.seed)
        engine.execute_schema(program.after_load)
        engine.checkpoint()
        storage.set_timing(True)
        clients = engine.clients(program.json, study.clients, plan.seed)
        undo.callback(clients.close)
        clients.run(None, WARM_UP_S)
        yield engine, storage, clients


def allow_observer(engine: PostgresEngine) -> None:
    """Give the clients' user the rights that an observation needs."""
    engine._known_process().query(f"GRANT pg_monitor TO {CLIENT}")
