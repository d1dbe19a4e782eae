"""The record of a run, built from its measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tierwise.host import doctor
from tierwise.lab.studies.runner.counter_window import CounterWindow, merge_windows
from tierwise.lab.studies.runner.lap_run import MeasuredLaps
from tierwise.lab.studies.runner.run_storage import RunStorage
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.lab.workloads import Workload
from tierwise.lab.workloads.dss.tpch_formulas import dss_metrics
from tierwise.results import EngineInfo, RunResult, WorkloadInfo
from tierwise.results.measurements import WaitProfile


def unmeasured_record(
    study: Study,
    plan: RunPlan,
    study_seed: int,
    engine: EngineInfo,
    storage: RunStorage,
    *,
    workload: Workload | None = None,
) -> RunResult:
    """The record of a run before it is measured: its conditions.

    Args:
        workload: what its clients run on a database.
    """
    return RunResult(
        study=study.name,
        run_id=plan.run_id,
        placement=plan.placement.name,
        setting=plan.setting,
        repeat=plan.repeat,
        order=plan.order,
        study_seed=study_seed,
        started_at=datetime.now(UTC),
        status="ok",
        machine=doctor.describe_machine(),
        engine=engine,
        workload=WorkloadInfo(
            **study.model_dump(include=set(WorkloadInfo.model_fields) - {"name"}),
            name=workload.name if workload else study.workload,
            digest=workload.own_digest if workload else None,
            seed=plan.seed,
            memory_bytes=study.memory,
        ),
        devices=storage.describe(),
        role_devices=dict(storage.role_devices),
    )


def failed_record(result: RunResult, problems: Sequence[str]) -> RunResult:
    """The record of an aborted run; each problem once."""
    return result.changed(status="failed", problems=list(dict.fromkeys(problems)))


def record_with_mix(
    prepared: RunResult, load: dict[str, Any], window: CounterWindow, *, sampled: bool
) -> RunResult:
    """The record of a mix of transactions."""
    problems = list(window.storage.problems)
    if sampled and window.waits is None:
        problems.append("the engine stopped answering the wait sampler")
    return prepared.changed(
        status="invalid" if problems else "ok",
        problems=problems,
        elapsed_s=window.elapsed_s,
        transactions=load["transactions"],
        rate_per_s=load["transactions"] / window.elapsed_s,
        errors=load["errors"],
        latency=load["latency"],
        elapsed_without_log_wait_s=projected_time_s(window.elapsed_s, window.waits),
        **_of_window(window),
    )


def record_with_laps(prepared: RunResult, measured: MeasuredLaps, score: Mapping[str, float]) -> RunResult:
    """The record of a run of laps: the sums over its timed laps.

    ``score`` is the input of the workload's metrics; empty if it defines none. It covers finished laps only.
    """
    run = prepared.changed(laps=measured.laps, problems=measured.problems)
    if measured.problems or not measured.windows:
        return run.changed(status="failed" if measured.problems else "ok")
    whole = merge_windows(measured.windows)
    timed = [lap for lap in measured.laps if lap.timed]
    transactions = sum(lap.transactions or 0 for lap in timed)
    capped = measured.capped
    return run.changed(
        status="invalid" if whole.storage.problems else "ok",
        problems=whole.storage.problems,
        elapsed_s=None if capped else whole.elapsed_s,
        elapsed_at_least_s=whole.elapsed_s if capped else None,
        transactions=transactions or None,
        rate_per_s=transactions / whole.elapsed_s if transactions and not capped else None,
        errors=0,
        scores=dss_metrics(score, measured.laps) if score else {},
        latency={lap.name: lap.latency for lap in timed if lap.latency is not None},
        elapsed_without_log_wait_s=None if capped else projected_time_s(whole.elapsed_s, whole.waits),
        **_of_window(whole),
    )


def _of_window(window: CounterWindow) -> dict[str, Any]:
    return {
        "devices": window.storage.devices,
        "cpu": window.cpu,
        "io": window.storage.io,
        "counters": window.engine,
        "waits": window.waits,
    }


def projected_time_s(elapsed_s: float, waits: WaitProfile | None) -> float | None:
    """Projected time of the run in seconds without log wait and without a CPU limit, if waits are known.

    Every session spends its share of time waiting for the log, so the elapsed time shrinks by that share:
    ``elapsed * (1 - share)``. This is the bound of Morle, "Solid State Disks in an Oracle Environment",
    section 5.1 ("The maximum possible would have been 40.5 %, as per the 'log file sync' waits").
    """
    if waits is None:
        return None
    log_share = sum(waits.shares[kind].share for kind in ("log_sync", "log_lock") if kind in waits.shares)
    return elapsed_s * max(0.0, 1 - log_share)
