"""Results of a study for every outcome that it may have."""

from __future__ import annotations

from collections.abc import Sequence

from support.results_factory import PLACEMENTS, study_runs
from tierwise.results import RunResult


def with_status(runs: Sequence[RunResult], placement: str, status: str, problem: str) -> list[RunResult]:
    change = {"status": status, "problems": [problem]}
    return [run.model_copy(update=change) if run.placement == placement else run for run in runs]


OUTCOMES: dict[str, list[RunResult]] = {
    "log wins, the rest adds nothing": study_runs(),
    "log wins, the rest adds more": study_runs(elapsed_s={"log-ssd": 15.0, "all-ssd": 5.0}),
    "log wins, the rest harms": study_runs(elapsed_s={"log-ssd": 5.0, "all-ssd": 7.0}),
    "no difference": study_runs(elapsed_s={"log-ssd": 42.0, "all-ssd": 41.0}),
    "slower": study_runs(elapsed_s={"log-ssd": 60.0, "all-ssd": 61.0}),
    "few repeats": study_runs(repeats=3),
    "one repeat": study_runs(repeats=1),
    "only the baseline": study_runs(placements=["all-hdd"]),
    "two placements": study_runs(placements=["all-hdd", "log-ssd"]),
    "two placements, no difference": study_runs(["all-hdd", "log-ssd"], {"log-ssd": 42.0}),
    "the log is not tried": study_runs(placements=["all-hdd", "data-ssd"], elapsed_s={"data-ssd": 35.0}),
    "four placements": study_runs(placements=list(PLACEMENTS)),
    "all failed": study_runs(status="failed", problems=["no space left on device"]),
    "all invalid": study_runs(status="invalid", problems=["ssd: deadline overrun p99 300 µs > 200 µs"]),
    "one placement failed": with_status(study_runs(), "all-ssd", "failed", "the device died"),
    "the baseline failed": with_status(study_runs(), "all-hdd", "failed", "the device died"),
    "the baseline has not run": study_runs(placements=["log-ssd", "all-ssd"]),
}
