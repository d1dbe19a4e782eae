"""One run: one execution of one workload under one placement, from empty devices to a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tierwise import engines, pattern_run
from tierwise.counters import Counters
from tierwise.engines.base import Engine
from tierwise.errors import TierwiseError
from tierwise.host import machine
from tierwise.plan import RunPlan
from tierwise.results import CpuUse, EngineInfo, Latency, RunResult, WaitProfile, WorkloadInfo
from tierwise.roles import Role
from tierwise.storage import Counted, Storage, open_storage
from tierwise.study import Study
from tierwise.workload import Workload

Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """What the measured phase gave."""

    load: dict[str, Any]
    """As the clients report it: times, counts and latencies."""
    engine: Counters
    engine_sampling_cpu_s: float
    """CPU that the engine spent on being sampled, part of its own figure."""
    waits: WaitProfile | None
    storage: Counted
    machine_busy_s: float


def execute(study: Study, plan: RunPlan, study_seed: int, say: Say) -> RunResult:
    """Run once and undo everything, whatever happens.

    Devices are made anew and filled at memory speed; then the caches are as the study wants them, the clients
    warm up, and the measured phase begins with every counter at zero.

    Args:
        study: what is asked.
        plan: which of its runs.
        study_seed: the seed that decided the order of runs.
        say: told of each phase as it begins.

    Returns:
        A record with status ``ok``; ``invalid`` where a device was too late to be believed; or ``failed``,
        with the cause, where the measured phase broke off.

    Raises:
        TierwiseError: if the run cannot be prepared, which is the user's to mend.
    """
    if study.patterns:
        return _execute_patterns(study, plan, study_seed, say)
    workload = Workload.load(study.workload)
    with ExitStack() as undo:
        engine = engines.create(plan.engine, study.settings.get(plan.engine, {}))
        say("making devices")
        storage = open_storage(study, plan, engine.roles, undo)
        undo.enter_context(engine)
        say("loading")
        _load(engine, storage, workload, study, plan.seed)
        info = EngineInfo(name=engine.name, version=engine.version(), settings=engine.settings())
        record = _record(study, plan, study_seed, info, storage)
        say("measuring")
        try:
            measured = _measure(engine, storage, workload, study, plan)
        except TierwiseError as error:
            cause = engine.failure()
            problems = [str(error), *([cause] if cause else [])]
            return record.model_copy(update={"status": "failed", "problems": problems})
        return _completed(record, measured)


def _execute_patterns(study: Study, plan: RunPlan, study_seed: int, say: Say) -> RunResult:
    """The same for a study of a device alone: a file in place of a database."""
    with ExitStack() as undo:
        say("making devices")
        storage = open_storage(study, plan, {Role.DATA}, undo)
        say("filling")
        target = pattern_run.prepare(storage, undo)
        record = _record(study, plan, study_seed, pattern_run.engine_info(), storage)
        say("measuring")
        try:
            measured = pattern_run.measure(study, plan, storage, target)
        except TierwiseError as error:
            return record.model_copy(update={"status": "failed", "problems": [str(error)]})
        return record.model_copy(
            update={
                "status": "invalid" if measured.storage.problems else "ok",
                "problems": measured.storage.problems,
                "devices": measured.storage.devices,
                "elapsed_s": measured.elapsed_s,
                "transactions": measured.requests,
                "rate_per_s": measured.requests / measured.elapsed_s,
                "errors": 0,
                "io": measured.storage.io,
                "patterns": measured.patterns,
                "flush": measured.flush,
            }
        )


def _load(engine: Engine, storage: Storage, workload: Workload, study: Study, seed: int) -> None:
    storage.set_timing(False)
    engine.init(storage.places)
    engine.start()
    engine.execute_schema(workload.schema)
    engine.load_tables(workload.to_json(study.scale), seed)
    engine.execute_schema(workload.after_load)
    engine.checkpoint()
    if study.caches == "cold":
        engine.restart_cold()
    storage.set_timing(True)


def _measure(engine: Engine, storage: Storage, workload: Workload, study: Study, plan: RunPlan) -> Measured:
    clients = engine.clients(workload.to_json(study.scale), study.clients, plan.seed)
    if study.warmup_transactions:
        clients.run(study.warmup_transactions, None)
    sampler = engine.sampler()
    before, busy_before_s = engine.counters(), machine.busy_cpu_s()
    storage.start_counting()
    sampler.start()
    try:
        load = json.loads(clients.run(study.transactions, study.seconds))
        counted = storage.stop_counting(load["elapsed_s"])
        busy_s = machine.busy_cpu_s() - busy_before_s
    finally:
        waits = sampler.stop()
    after = engine.counters()
    return Measured(load, after.since(before), sampler.engine_cpu_s, waits, counted, busy_s)


def _record(study: Study, plan: RunPlan, study_seed: int, engine: EngineInfo, storage: Storage) -> RunResult:
    """The record of a run that is about to be measured: its conditions."""
    return RunResult(
        study=study.name,
        run_id=plan.run_id,
        placement=plan.placement.name,
        repeat=plan.repeat,
        order=plan.order,
        study_seed=study_seed,
        started_at=datetime.now(UTC),
        status="ok",
        machine=machine.describe(),
        engine=engine,
        workload=WorkloadInfo(
            name=study.workload,
            scale=study.scale,
            clients=study.clients,
            seed=plan.seed,
            warmup_transactions=study.warmup_transactions,
            caches=study.caches,
        ),
        devices=storage.describe(),
        role_devices=dict(storage.role_devices),
    )


def _completed(record: RunResult, measured: Measured) -> RunResult:
    load, waits = measured.load, measured.waits
    elapsed_s = load["elapsed_s"]
    problems = list(measured.storage.problems)
    if waits is None:
        problems.append("the engine stopped answering the wait sampler")
    return record.model_copy(
        update={
            "status": "invalid" if problems else "ok",
            "problems": problems,
            "devices": measured.storage.devices,
            "elapsed_s": elapsed_s,
            "transactions": load["transactions"],
            "rate_per_s": load["transactions"] / elapsed_s,
            "errors": load["errors"],
            "latency": {name: Latency.model_validate(one) for name, one in load["latency"].items()},
            "cpu": _cpu_use(measured),
            "io": measured.storage.io,
            "counters": measured.engine,
            "waits": waits,
            "elapsed_without_log_wait_s": projection_s(elapsed_s, waits) if waits else None,
        }
    )


def _cpu_use(measured: Measured) -> CpuUse | None:
    if measured.engine.cpu_s is None:
        return None
    engine_s = measured.engine.cpu_s - measured.engine_sampling_cpu_s
    clients_s = measured.load["client_cpu_s"]
    disks_s = measured.storage.cpu_s
    other_s = measured.machine_busy_s - engine_s - clients_s - (disks_s or 0.0)
    return CpuUse(engine_s=engine_s, clients_s=clients_s, disks_s=disks_s, other_s=max(other_s, 0.0))


def projection_s(elapsed_s: float, waits: WaitProfile) -> float:
    """Time that the run would take were the log wait gone and CPU not short, in seconds.

    Every session spends its share of time waiting for the log, so the elapsed time shrinks by that share:
    ``elapsed * (1 - share)``. This is the bound of Morle, "Solid State Disks in an Oracle Environment",
    section 5.1 ("The maximum possible would have been 40.5 %, as per the 'log file sync' waits").
    """
    log_share = sum(waits.shares[kind].share for kind in ("log_sync", "log_lock") if kind in waits.shares)
    return elapsed_s * (1 - log_share)
