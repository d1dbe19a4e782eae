"""Synthetic results with the proportions of real ones. No number here was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from tierwise.model.placement import Role
from tierwise.results import (
    Counters,
    CpuUse,
    DeadlineOverrun,
    DeviceInfo,
    EngineInfo,
    Latency,
    PaperValue,
    RoleIo,
    RunConditions,
    RunResult,
    StudyInfo,
    WaitClass,
    WaitProfile,
    WaitShare,
    WorkloadInfo,
)

TRANSACTIONS = 5_000
BASELINE = "all-hdd"
PLACEMENTS: dict[str, dict[Role, str]] = {
    "all-hdd": {Role.LOG: "hdd-log", Role.DATA: "hdd", Role.INDEX: "hdd", Role.TEMP: "hdd"},
    "log-ssd": {Role.LOG: "ssd", Role.DATA: "hdd", Role.INDEX: "hdd", Role.TEMP: "hdd"},
    "all-ssd": dict.fromkeys((Role.LOG, Role.DATA, Role.INDEX, Role.TEMP), "ssd"),
    "data-ssd": {Role.LOG: "hdd-log", Role.DATA: "ssd", Role.INDEX: "hdd", Role.TEMP: "hdd"},
}
ELAPSED_S = {"all-hdd": 41.9, "log-ssd": 5.31, "all-ssd": 5.24, "data-ssd": 41.2}
PROFILES = {"hdd": "hdd-10k-18g-fc", "hdd-log": "hdd-10k-18g-fc", "ssd": "ssd-dram-fc"}
MACHINE = RunConditions(
    host="synthetic",
    cpu_model="Example CPU at 2.5 GHz",
    cores=2,
    memory_bytes=8 << 30,
    kernel="6.18.0",
    operating_system="Debian GNU/Linux 12 (bookworm)",
    tierwise_version="0.1.0",
)
ENGINE = EngineInfo(
    name="postgres",
    version="18.6",
    settings={
        "checkpoint_timeout": "15min",
        "fsync": "on",
        "full_page_writes": "on",
        "max_wal_size": "1GB",
        "shared_buffers": "512MB",
        "synchronous_commit": "on",
        "wal_buffers": "16MB",
        "wal_sync_method": "fdatasync",
    },
)


@dataclass
class Make:
    """What a synthetic run may differ in; everything else follows from the elapsed time."""

    placement: str = BASELINE
    elapsed_s: float = ELAPSED_S[BASELINE]
    repeat: int = 1
    order: int = 1
    status: str = "ok"
    problems: Sequence[str] = ()
    setting: Mapping[str, str] = field(default_factory=dict)
    engine: str = "postgres"
    transactions: int = TRANSACTIONS
    overrun_p99_us: float = 34.0


def latency(median_us: float, count: int) -> Latency:
    """A right-skewed distribution around ``median_us``."""
    return Latency(
        count=count,
        mean_us=median_us * 1.15,
        p50_us=median_us,
        p95_us=median_us * 2.1,
        p99_us=median_us * 3.4,
        p999_us=median_us * 6.0,
        max_us=median_us * 11.0,
    )


def run(make: Make) -> RunResult:
    """One synthetic run; a failed one has no measurements."""
    roles = PLACEMENTS[make.placement]
    common = {
        "study": "redo-placement",
        "run_id": f"{make.engine}.{make.placement}.{make.repeat}.{make.order}",
        "placement": make.placement,
        "setting": dict(make.setting),
        "repeat": make.repeat,
        "order": make.order,
        "study_seed": 20,
        "started_at": datetime(2026, 1, 15, 9, 0, tzinfo=UTC) + timedelta(minutes=make.order),
        "status": make.status,
        "problems": list(make.problems),
        "machine": MACHINE,
        "engine": ENGINE.model_copy(update={"name": make.engine}),
        "workload": WorkloadInfo(
            name="order_entry", scale=1.0, clients=10, seed=20 + make.repeat, warmup_transactions=500
        ),
        "role_devices": roles,
    }
    if make.status == "failed":
        return RunResult(**common, devices=_devices(roles, None))  # type: ignore[arg-type]
    return RunResult(**common, devices=_devices(roles, make.overrun_p99_us), **_measured(make))  # type: ignore[arg-type]


def _devices(roles: Mapping[Role, str], p99_us: float | None) -> list[DeviceInfo]:
    late = p99_us and DeadlineOverrun(
        p50_us=p99_us / 6, p99_us=p99_us, max_us=p99_us * 20, share=p99_us / 4000, bound_share=0.05
    )
    return [
        DeviceInfo(
            name=name,
            kind=PROFILES[name].split("-")[0],
            profile=PROFILES[name],
            path=None,
            roles=[role for role, device in roles.items() if device == name],
            deadline_overrun=late or None,
        )
        for name in sorted(set(roles.values()))
    ]


def _measured(make: Make) -> dict[str, object]:
    log_on_disk = PLACEMENTS[make.placement][Role.LOG] != "ssd"
    waits = _waits(log_on_disk)
    log_share = waits.shares["log_sync"].share + waits.shares["log_lock"].share
    per_transaction_us = make.elapsed_s / make.transactions * 10 * 1e6
    return {
        "elapsed_s": make.elapsed_s,
        "transactions": make.transactions,
        "rate_per_s": make.transactions / make.elapsed_s,
        "errors": 0,
        "latency": {
            "all": latency(per_transaction_us * 0.85, make.transactions),
            "new_order": latency(per_transaction_us * 0.95, int(make.transactions * 0.5)),
            "payment": latency(per_transaction_us * 0.8, int(make.transactions * 0.4)),
            "status": latency(900.0, int(make.transactions * 0.1)),
        },
        "cpu": CpuUse(
            engine_s=3.1, clients_s=0.4, disks_s=0.2 + make.elapsed_s * 0.01, other_s=make.elapsed_s * 0.02
        ),
        "io": _io(make, log_on_disk),
        "counters": Counters(log_bytes=9_400_000, logical_reads=413_900, pages_read=1_900),
        "waits": waits,
        "elapsed_without_log_wait_s": make.elapsed_s * (1 - log_share),
    }


def _waits(log_on_disk: bool) -> WaitProfile:
    slow: dict[WaitClass, float] = {
        "cpu": 0.055, "log_sync": 0.195, "log_lock": 0.625, "data_read": 0.045, "lock": 0.05, "client": 0.03,
    }  # fmt: skip
    fast: dict[WaitClass, float] = {
        "cpu": 0.46, "log_sync": 0.06, "log_lock": 0.09, "data_read": 0.07, "data_write": 0.01, "lock": 0.07,
        "client": 0.22, "other": 0.02,
    }  # fmt: skip
    shares = {
        kind: WaitShare(share=s, sampling_error=0.008) for kind, s in (slow if log_on_disk else fast).items()
    }
    return WaitProfile(ticks=2_000, samples=20_000, rate_hz=50.0, shares=shares)


def _io(make: Make, log_on_disk: bool) -> dict[Role, RoleIo]:
    devices = PLACEMENTS[make.placement]
    flushes = 3_050 if log_on_disk else 4_620
    log_us = 5_900.0 if log_on_disk else 85.0
    log = RoleIo(
        device=devices[Role.LOG], reads=0, writes=flushes, flushes=flushes, discards=0, read_bytes=0,
        write_bytes=flushes * 11_500, busy_s=make.elapsed_s * (0.93 if log_on_disk else 0.11),
        queue_depth_mean=0.95 if log_on_disk else 0.12, write_latency=latency(log_us, flushes),
        flush_latency=latency(log_us * 0.2, flushes),
    )  # fmt: skip
    data_us = 6_400.0 if devices[Role.DATA] != "ssd" else 90.0
    data = RoleIo(
        device=devices[Role.DATA], reads=1_210, writes=2_330, flushes=14, discards=0,
        read_bytes=1_210 * 8192, write_bytes=2_330 * 9_600, busy_s=make.elapsed_s * data_us / 32_000,
        queue_depth_mean=0.4, read_latency=latency(data_us, 1_210),
        write_latency=latency(data_us * 0.7, 2_330),
    )  # fmt: skip
    index = data.model_copy(update={"device": devices[Role.INDEX], "reads": 690, "read_bytes": 690 * 8192})
    temp = RoleIo(
        device=devices[Role.TEMP], reads=0, writes=0, flushes=0, read_bytes=0, write_bytes=0, busy_s=0.0
    )
    return {Role.LOG: log, Role.DATA: data, Role.INDEX: index, Role.TEMP: temp}


def study_runs(
    placements: Sequence[str] = ("all-hdd", "log-ssd", "all-ssd"),
    elapsed_s: Mapping[str, float] | None = None,
    repeats: int = 5,
    noise: float = 0.025,
    **changes: object,
) -> list[RunResult]:
    """Runs of a whole study in a shuffled order, with log-normal noise of standard deviation ``noise``."""
    rng = np.random.default_rng(11)
    times = ELAPSED_S | dict(elapsed_s or {})
    plans = [
        (placement, repeat) for repeat in range(1, repeats + 1) for placement in rng.permutation(placements)
    ]
    return [
        run(Make(str(p), float(times[str(p)] * np.exp(noise * rng.standard_normal())), r, order, **changes))  # type: ignore[arg-type]
        for order, (p, r) in enumerate(plans, start=1)
    ]


def _figure(placement: str, what: str, value: float, unit: str, source: str) -> PaperValue:
    return PaperValue(
        placement=placement, what=what, value=value, unit=unit, source=f"Morle, test 1, {source}"
    )


INFO = StudyInfo(
    name="redo-placement",
    question="Does the log deserve the fast device?",
    baseline=BASELINE,
    placements=["all-hdd", "log-ssd", "all-ssd"],
    repeats=5,
    seed=20,
    fingerprint="synthetic",
    notes=[
        "The paper ran Oracle 9i on two Pentium III processors; this is PostgreSQL on today's processors.",
        "The paper does not state its data size; only ratios between placements compare.",
    ],
    paper=[
        _figure("all-hdd", "elapsed", 42.18, "s", "Cheetah drives"),
        _figure("all-hdd", "log wait share", 40.5, "%", "'log file sync'"),
        _figure("all-hdd", "client wait share", 17.43, "%", "'SQL*Net message from client'"),
        _figure("all-hdd", "elapsed without log wait", 29.95, "s", "projection with CPU to spare"),
        _figure("log-ssd", "elapsed", 34.22, "s", "Imperial MegaRAM"),
        _figure("log-ssd", "log wait share", 7.07, "%", "'log file sync'"),
        _figure("log-ssd", "client wait share", 28.90, "%", "'SQL*Net message from client'"),
    ],
)
