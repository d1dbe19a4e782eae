"""Reads the forecasts in the JSON of ``advise`` or ``predict``; the file may be a stranger's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tierwise.advise.forecast import Forecast
from tierwise.device_models import profiles
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import parse_json, read_text
from tierwise.model.names import resolved
from tierwise.model.output_files import SCHEMA_VERSION
from tierwise.model.strict_model import first_problem
from tierwise.predict import Prediction, RecordedRun, Scenario

KINDS = ("advice", "day-advice", "prediction", "ranking")
_FIX = "name a file that tierwise advise or predict printed with --format json"
_LOADS = {"mean": "at mean rate", "peak": "at peak rate", "worst-p99": "in the worst p99 hour"}
"""Loads of a day, the one whose advice is recommended first."""


def read_forecasts(path: Path, named: Mapping[str, str] | None = None) -> list[Forecast]:
    """All predictions of a file that were answered, the one that it recommends first.

    Args:
        path: of the file.
        named: placement that the user names: only its devices may be files.

    Raises:
        TierwiseError: naming the file, if it is none of these, of another version, damaged or without an
            answered prediction; or if it names a file as a device that the user does not name.
    """
    own = {_file_of(device) for device in (named or {}).values() if profiles.is_path(device)}
    content = _parsed(path)
    try:
        forecasts = [
            Forecast(
                file=path.name, label=label, run=_run(run), prediction=_prediction(prediction, path, own)
            )
            for label, run, prediction in _listed(content)
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TierwiseError(f"{path}: not as tierwise prints it ({_first_line(error)})", _FIX) from None
    answered = [
        forecast
        for forecast in forecasts
        if forecast.prediction.refused is None and forecast.prediction.rate_per_s
    ]
    if not answered:
        raise TierwiseError(f"{path}: it holds no prediction that was answered", _FIX)
    return answered


def _parsed(path: Path) -> dict[str, Any]:
    content = parse_json(read_text(path, _FIX), str(path), _FIX)
    kind = content.get("schema") if isinstance(content, dict) else None
    if kind not in KINDS:
        raise TierwiseError(f"{path}: neither advice nor a prediction", _FIX)
    version = content.get("schema_version")
    if version != SCHEMA_VERSION:
        raise TierwiseError(
            f"{path}: version {version} of {kind}, not {SCHEMA_VERSION}", "use the tierwise that wrote it"
        )
    return dict(content)


def _listed(content: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Label, run and prediction; a label is empty where the file recommends none of several."""
    match content["schema"]:
        case "prediction":
            yield from (("", content["recorded"], prediction) for prediction in content["predictions"])
        case "ranking":
            for number, prediction in enumerate(content["ranking"]["closer"], start=1):
                yield f"rank {number}", content["recorded"], prediction
        case "advice":
            for label, prediction in _of_advice(content["advice"]):
                yield label, content["recorded"], prediction
        case _:
            answers = {answer["load"]: answer["advice"] for answer in content["day_advice"]["answers"]}
            for load, name in _LOADS.items():
                if advice := answers.get(load):
                    yield from (
                        (f"{label} {name}", advice["run"], prediction)
                        for label, prediction in _of_advice(advice)
                    )


def _of_advice(advice: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    decided = advice["decision"]["option"]
    named = (("the best placement", advice["best"]), ("the placement for the goal", advice["reaching"]))
    options = [(label, option) for label, option in named if option]
    options.sort(
        key=lambda option: option[1]["placement"] != decided["placement"]
    )  # the recommended one first
    yield from ((label, option["prediction"]) for label, option in options)
    rungs = list(enumerate(advice["ladder"], start=1))
    yield from ((f"step {number} of the ladder", rung["prediction"]) for number, rung in reversed(rungs))
    yield from (("a single move", move["prediction"]) for move in advice["moves"])


def _run(content: Any) -> RecordedRun:
    """A run whose clients, cores and memory can be asked for in a scenario."""
    run = RecordedRun.model_validate_json(json.dumps(content), strict=True)
    Scenario(clients=run.clients, cores=run.cores, memory_bytes=run.memory_bytes)
    return run


def _prediction(content: Any, path: Path, own: set[str]) -> Prediction:
    """A prediction of the file. A scenario opens the files of its devices, so their names come first."""
    for device in content["scenario"]["placement"].values():
        if profiles.is_path(device) and _file_of(device) not in own:
            raise TierwiseError(f"{path} names the file {device!r} as a device", "name it too, with --place")
    made = Prediction.model_validate_json(json.dumps(content), strict=True)
    figures = [
        estimate for estimate in (made.rate_per_s, made.elapsed_s, made.p50_us, made.p99_us) if estimate
    ]
    numbers = [
        *made.seed_rates_per_s,
        *(end for estimate in figures for end in (estimate.low, estimate.value, estimate.high)),
    ]
    if made.refused is None and (not made.seed_rates_per_s or min(numbers) <= 0):
        raise ValueError("a figure that is not above 0")
    return made


def _file_of(device: str) -> str:
    return str(resolved(Path(device.partition("#")[0])))


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return first_problem(error)
    return f"{type(error).__name__}: {error}"
