"""Predicted beside measured: every recording asked for every other placement of its case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tierwise.errors import TierwiseError
from tierwise.predict import Estimate, ModelError, Prediction, Predictor, Question, Refusal
from tierwise.results import RunResult
from tierwise.validate.accuracy import Pair, Reproduction
from tierwise.validate.runner import of_case, recording_of
from tierwise.validate.spec import Case, ValidationSpec

ErrorOf = Callable[[str], ModelError]
"""The error of the model that predictions of a workload may know of."""
Found = tuple[list[Reproduction], list[Pair]]


def nothing_learnt(workload: str) -> ModelError:
    """For predictions from which the error is yet to be learnt."""
    del workload
    return ModelError()


@dataclass(frozen=True)
class Runs:
    """What was recorded and measured."""

    spec: ValidationSpec
    cases: Sequence[Case]
    directory: Path
    """Of the recordings."""
    results: Sequence[RunResult]


def compare(runs: Runs, error_of: ErrorOf, say: Callable[[str], None]) -> Found:
    """Predict from every recording that is there, and put the measurements beside.

    Args:
        runs: to compare with.
        error_of: error of the model by workload, which the intervals are to hold.
        say: told of each recording as it is asked.
    """
    reproductions: list[Reproduction] = []
    pairs: list[Pair] = []
    for case in runs.cases:
        for recorded in runs.spec.recorded:
            for run in of_case(runs.results, case, recorded, "recorded"):
                say(f"{case.name} from {recorded}")
                reproduction, more = _from_recording(runs, case, recorded, run, error_of(case.workload))
                reproductions.append(reproduction)
                pairs += more
    return reproductions, pairs


def _from_recording(
    runs: Runs, case: Case, recorded: str, run: RunResult, error: ModelError
) -> tuple[Reproduction, list[Pair]]:
    reproduction = Reproduction(
        case=case.name, workload=case.workload, engine=run.engine.name, recorded=recorded
    )
    try:
        predictor = Predictor.open(recording_of(runs.directory, run.run_id), model_error=error)
    except TierwiseError as problem:
        return reproduction.model_copy(update={"refused": str(problem)}), []
    placements = [one for one in case.study.placements if one != recorded]
    questions = [Question(placement=runs.spec.question_of(one), emulated=True) for one in placements]
    asked = dict(zip(placements, predictor.predict(questions), strict=True))
    found = {
        "error": predictor.run.error,
        "latency_error": predictor.run.latency_error,
    }
    units = _units(run, predictor)
    return reproduction.model_copy(update=found), list(_pairs(case, recorded, asked, runs.results, units))


def _words(refusal: Refusal | None) -> str | None:
    return None if refusal is None else refusal.message


def _units(run: RunResult, predictor: Predictor) -> float:
    """Transactions for each unit that predictions count, where the recording shows requests alone."""
    if predictor.run.unit == "transactions" or run.rate_per_s is None:
        return 1.0
    return run.rate_per_s / predictor.run.rate_per_s


def _pairs(
    case: Case,
    recorded: str,
    asked: dict[str, Prediction],
    results: Sequence[RunResult],
    units: float,
) -> Iterator[Pair]:
    for placement, prediction in asked.items():
        runs = of_case(results, case, placement, "measured")
        if not runs:
            continue
        timed = case.study.seconds is None
        measured = [run.elapsed_s if timed else run.rate_per_s for run in runs]
        estimate = prediction.elapsed_s if timed else _times(prediction.rate_per_s, units)
        yield Pair(
            case=case.name,
            workload=case.workload,
            engine=runs[0].engine.name,
            clients=case.study.clients,
            recorded=recorded,
            placement=placement,
            unit="s" if timed else "transactions/s",
            measured=[value for value in measured if value is not None],
            predicted=estimate,
            speedup=prediction.speedup.value if prediction.speedup else None,
            refused=_words(prediction.refused),
            latency_us={} if timed else _latencies(prediction, runs),
        )


def _times(estimate: Estimate | None, factor: float) -> Estimate | None:
    if estimate is None:
        return None
    return Estimate(value=estimate.value * factor, low=estimate.low * factor, high=estimate.high * factor)


def _latencies(prediction: Prediction, runs: Sequence[RunResult]) -> dict[str, tuple[float, float]]:
    """Predicted and measured percentiles; the median over runs of the latter."""
    found = {}
    for name in ("p50_us", "p95_us", "p99_us"):
        estimate: Estimate | None = getattr(prediction, name)
        values = sorted(getattr(run.latency["all"], name) for run in runs if "all" in run.latency)
        if estimate and values:
            found[name] = (estimate.value, values[len(values) // 2])
    return found
