"""Synthetic results of workloads that are run lap by lap, proportioned like real ones. None was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from support.results_factory import INFO, PLACEMENTS, Make, _io, _waits, run
from tierwise.model.placement import Role
from tierwise.results import Counters, LapResult, PaperValue, RoleProof, RunResult, StudyInfo

N = 3_000
CHECKSUMS = {"write": N * (N + 1) // 2, "query string": 405_450, "update": 100, "delete": N}
LAPS_S: dict[str, dict[str, float]] = {
    "all-hdd": {"write": 2.4, "query string": 0.31, "update": 0.052, "delete": 0.9},
    "log-ssd": {"write": 0.9, "query string": 0.31, "update": 0.031, "delete": 0.8},
    "all-ssd": {"write": 0.8, "query string": 0.3, "update": 0.016, "delete": 0.36},
}
LAP_INFO = INFO.model_copy(
    update={
        "name": "bahrain",
        "question": "Which laps gain from which files on the SSD?",
        "notes": ["The paper ran Versant; this is another engine."],
        "paper": [
            PaperValue(
                placement="all-ssd",
                lap="write",
                what="speedup",
                value=3,
                unit="×",
                source="Jochumsen, Bahrain, chart",
            ),
            PaperValue(
                placement="all-hdd",
                lap="write",
                what="log wait share",
                value=22,
                unit="%",
                source="Jochumsen, Bahrain, commit and checkpoint",
            ),
        ],
    }
)
SWEEP_INFO: StudyInfo = LAP_INFO.model_copy(update={"sweep": {"memory": ["64M", "256M", "1G"]}})


def lap_run(
    placement: str, times_s: Mapping[str, float], repeat: int, order: int, cap_s: float | None = None
) -> RunResult:
    """One run; laps that would take longer than ``cap_s`` were stopped there."""
    elapsed_s = sum(min(time_s, cap_s or time_s) for time_s in times_s.values())
    whole = run(Make(placement, elapsed_s, repeat, order))
    laps = [_lap(placement, name, time_s, cap_s) for name, time_s in times_s.items()]
    proof = {
        role: RoleProof(device=device, reached_bytes=9_000_000, written_bytes=9_100_000, share=0.989, files=3)
        for role, device in PLACEMENTS[placement].items()
    }
    return whole.model_copy(
        update={
            "study": LAP_INFO.name,
            "workload": whole.workload.model_copy(update={"name": "bahrain", "constants": {"n": N}}),
            "laps": laps,
            **({"elapsed_s": None, "elapsed_at_least_s": elapsed_s} if _capped(laps) else {}),
            "latency": {},
            "counters": _counters(elapsed_s),
            "proof": proof,
            "residency": {Role.DATA: 0.2, Role.LOG: 0.0},
        }
    )


def _capped(laps: Sequence[LapResult]) -> bool:
    return any(lap.status == "capped" for lap in laps)


def _lap(placement: str, name: str, time_s: float, cap_s: float | None) -> LapResult:
    capped = cap_s is not None and time_s > cap_s
    on_disk = PLACEMENTS[placement][Role.LOG] != "ssd"
    return LapResult(
        name=name,
        status="capped" if capped else "ok",
        elapsed_s=min(time_s, cap_s or time_s),
        transactions=3 if name == "write" else 1,
        rows=N,
        checksum=None if capped else CHECKSUMS.get(name),
        expected_checksum=CHECKSUMS.get(name),
        cold=name == "query string",
        resident_share=0.2,
        counters=_counters(time_s),
        io=_io(Make(placement, time_s), on_disk),
        waits=_waits(on_disk),
    )


def _counters(elapsed_s: float) -> Counters:
    return Counters(
        cpu_s=0.2 + elapsed_s / 100,
        log_bytes=9_400_000,
        logical_reads=413_900,
        physical_reads=1_800,
        pages_read=1_900,
        physical_writes=800,
        pages_written=2_000,
        page_bytes=8192,
    )


def lap_runs(
    laps_s: Mapping[str, Mapping[str, float]] | None = None,
    repeats: int = 5,
    noise: float = 0.02,
    cap_s: float | None = None,
    setting: Mapping[str, str] | None = None,
) -> list[RunResult]:
    """Runs of a whole study, interleaved, with log-normal noise of standard deviation ``noise``."""
    rng = np.random.default_rng(12)
    times_s = laps_s or LAPS_S
    runs = []
    for repeat in range(1, repeats + 1):
        for placement, laps in times_s.items():
            noisy = {name: t * float(np.exp(noise * rng.standard_normal())) for name, t in laps.items()}
            run = lap_run(placement, noisy, repeat, len(runs) + 1, cap_s)
            name = "-".join([run.run_id, *(setting or {}).values()])
            runs.append(run.model_copy(update={"setting": dict(setting or {}), "run_id": name}))
    return runs


def sweep_runs(factors: Mapping[str, float], repeats: int = 5, lap: str | None = None) -> list[RunResult]:
    """The study at several memory sizes: times are multiplied by the factor, of all laps or of one."""
    return [
        run
        for memory, factor in factors.items()
        for run in lap_runs(
            {
                placement: {n: t * (factor if lap in (None, n) else 1) for n, t in laps.items()}
                for placement, laps in LAPS_S.items()
            },
            repeats,
            setting={"memory": memory},
        )
    ]
