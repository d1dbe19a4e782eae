"""A forecast against a recording taken after the move: did it come true, and if not, why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from tierwise.advise.differences import (
    ConditionDifference,
    RecordingAfterMove,
    RoleServiceTimes,
    WorkChange,
    changed_devices,
    condition_differences,
    misplaced_roles,
    work_changes,
)
from tierwise.advise.forecast_file import Forecast, choose_forecast, read_forecasts
from tierwise.model.errors import TierwiseError
from tierwise.model.names import join_words
from tierwise.predict import Estimate, Prediction, Predictor, RecordedRun
from tierwise.predict.predictor import SEEDS
from tierwise.predict.rate_unit import parse_rate_unit
from tierwise.predict.simulator_output import CHANCE
from tierwise.predict.usability import UsabilityRemark, judge_usability
from tierwise.results.measurements import StrictModel


class VerifiedFigure(StrictModel):
    """One predicted figure and what came of it."""

    what: Literal["rate", "time", "p50", "p99"]
    """``rate`` in transactions (or requests) a second, ``time`` in s, percentiles in µs."""
    predicted: Estimate
    """As forecast."""
    measured: float
    """In the recording after."""
    inside: bool
    """Whether it lies in the predicted interval, widened by ``chance``."""


class ForecastVerification(StrictModel):
    """A forecast, what came of it, and what differs from its conditions."""

    forecast: Forecast
    """What was predicted."""
    after: RecordedRun
    """The run recorded after the move."""
    chance: float
    """Half width of the logarithm by which chance moves a figure of the recording after: ``CHANCE``, by which
    quiet runs of the same work differ, and 1/√n for n transactions, added as squares."""
    figures: list[VerifiedFigure]
    """Rate, p50 and p99; or the time of work done once."""
    inside: bool
    """Whether all figures lie inside."""
    differences: list[ConditionDifference]
    """Conditions that differ from those of the forecast, the one that explains most first."""
    undone_per_s: Estimate | None
    """Rate of the recording after, replayed with all differences undone that a replay can undo; ``None`` if
    it can undo none."""
    explained: bool
    """Whether that rate and every figure that was outside then lie within the predicted intervals."""
    roles: list[RoleServiceTimes]
    """Device time of a request, for each role with requests."""
    work: list[WorkChange]
    """Parts of a transaction's work that are not as they were."""
    usable: bool
    """Whether the recording after is usable."""
    remarks: list[UsabilityRemark]
    """Problems of the recording after and what to do, those that make it unusable first."""
    warnings: list[str]
    """Of the recording after and of the comparison."""


def verify_forecast(
    forecast: Path,
    recording: Path,
    place: Mapping[str, str] | None = None,
    *,
    seeds: int = SEEDS,
    names: Path | None = None,
) -> ForecastVerification:
    """Compare a forecast with a recording taken after the move.

    Args:
        forecast: file that ``tierwise advise`` or ``predict`` printed with ``--format json``.
        recording: folder of the recording after.
        place: the placement to verify, role -> device; see
            :func:`tierwise.advise.forecast_file.choose_forecast`.
        seeds: runs of the simulator for each replay.
        names: CSV file of the names of tables and indexes, in place of those that the recording has.

    Raises:
        TierwiseError: naming the file; or if the two count different units of work.
    """
    forecasts = read_forecasts(forecast, place)
    predictor = Predictor.open(recording, seeds=seeds, names=names)
    if predictor.run.from_waits:
        raise TierwiseError(
            f"{recording}: an observation, which does not tell the machine and its devices",
            "name a folder that tierwise record has written after the move",
        )
    models = {role.value: model for role, model in predictor.run.devices.items()}
    chosen = choose_forecast(forecasts, place, models)
    if names is not None and not chosen.prediction.scenario.selected:
        raise TierwiseError("--names: the forecast places no table or index", "leave out --names")
    unit = chosen.prediction.unit
    if predictor.run.unit != unit:
        if unit != "requests":
            raise TierwiseError(
                f"{recording}: it shows no {unit}, and the forecast counts them", "record with --dsn"
            )
        predictor = Predictor.open(recording, seeds=seeds, unit=parse_rate_unit(unit), names=names)
    predictor, untold = _telling(predictor, chosen.prediction.scenario.selected)
    if predictor.run.once != chosen.prediction.once:
        raise TierwiseError(
            f"{recording}: one of the two is of work done once, the other of repeated work",
            "record the same work",
        )
    return _verified(chosen, predictor, untold)


def _telling(predictor: Predictor, selected: tuple[str, ...]) -> tuple[Predictor, str]:
    """The recording after with the forecast's tables apart from their role, or why it cannot tell them."""
    try:
        return predictor.selecting(selected), ""
    except TierwiseError as error:
        return predictor, (
            f"{error.message}, so neither devices nor requests are compared with the forecast, which has "
            f"{join_words(selected)} apart: {error.fix}"
        )


def _verified(forecast: Forecast, predictor: Predictor, untold: str) -> ForecastVerification:
    chance = _chance(predictor)
    figures = _figures(forecast, predictor, chance)
    after = RecordingAfterMove(forecast, predictor)
    differences = [
        *condition_differences(forecast, after),
        *([] if untold else misplaced_roles(forecast, after)),
    ]
    undone = after.undone
    differences += [
        device
        for device in ([] if untold else changed_devices(forecast, undone))
        if device.role not in {each.role for each in differences}
    ]
    undoes = any(difference.rate_per_s is not None for difference in differences)
    judged = judge_usability(predictor)
    differences.sort(key=lambda difference: -(difference.closes or 0.0))
    rate = forecast.prediction.rate_per_s
    return ForecastVerification(
        forecast=forecast,
        after=predictor.run,
        chance=chance,
        figures=figures,
        inside=all(figure.inside for figure in figures),
        differences=differences,
        undone_per_s=undone.rate_per_s if undone and undoes else None,
        explained=bool(undone and undoes and rate and _explains(undone, rate, figures, chance)),
        roles=[] if untold else after.role_times(),
        work=work_changes(forecast, predictor.run, None if untold else undone),
        usable=judged.usable,
        remarks=judged.ordered,
        warnings=[
            *_engines(forecast, predictor.run),
            *([untold] if untold else []),
            *predictor.as_recorded.warnings,
        ],
    )


def _explains(undone: Prediction, rate: Estimate, figures: Sequence[VerifiedFigure], chance: float) -> bool:
    """Whether a replay lies inside the forecast by its rate, and by each figure that was outside."""
    then = {"rate": undone.rate_per_s, "time": undone.elapsed_s, "p50": undone.p50_us, "p99": undone.p99_us}
    asked = [(then["rate"], rate)]
    asked += [(then[figure.what], figure.predicted) for figure in figures if not figure.inside]
    return all(value and is_within_interval(value.value, predicted, chance) for value, predicted in asked)


def _chance(predictor: Predictor) -> float:
    """Half width of the logarithm of a figure of the recording after, by chance alone."""
    work = predictor.work
    seen = work.transactions if predictor.run.unit == "transactions" else work.turns
    return CHANCE if work.once else math.hypot(CHANCE, 1 / math.sqrt(max(seen, 1)))


def _figures(forecast: Forecast, predictor: Predictor, chance: float) -> list[VerifiedFigure]:
    prediction, run, seen = forecast.prediction, predictor.run, predictor.work.observed
    if prediction.once:
        return [
            figure for figure in [_figure("time", prediction.elapsed_s, run.duration_s, chance)] if figure
        ]
    figures = [
        _figure("rate", prediction.rate_per_s, run.rate_per_s, chance),
        _figure("p50", prediction.p50_us, seen.p50_us, chance),
        _figure("p99", prediction.p99_us, seen.p99_us, chance),
    ]
    return [figure for figure in figures if figure]


def _figure(
    what: Literal["rate", "time", "p50", "p99"],
    predicted: Estimate | None,
    measured: float | None,
    chance: float,
) -> VerifiedFigure | None:
    if predicted is None or measured is None:
        return None
    return VerifiedFigure(
        what=what,
        predicted=predicted,
        measured=measured,
        inside=is_within_interval(measured, predicted, chance),
    )


def is_within_interval(measured: float, predicted: Estimate, chance: float) -> bool:
    """Whether a figure lies in a predicted interval, widened by chance."""
    factor = math.exp(chance)
    return predicted.low / factor <= measured <= predicted.high * factor


def _engines(forecast: Forecast, after: RecordedRun) -> list[str]:
    if forecast.run.engine == after.engine:
        return []
    return [f"the forecast is for {forecast.run.engine}, and {after.engine} was recorded"]
