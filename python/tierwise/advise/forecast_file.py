"""Reads the forecasts in the JSON of ``advise`` or ``predict``; the file may be a stranger's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tierwise.device_models import profiles
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import first_validation_problem, parse_json, read_text
from tierwise.model.names import resolved_path
from tierwise.model.output_files import SCHEMA_VERSION
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Prediction, RecordedRun, Scenario, resolve_device
from tierwise.results.measurements import StrictModel


class Forecast(StrictModel):
    """One prediction of a file, and the run that it was made from."""

    file: str
    """Name of the file."""
    label: str
    """What the prediction is in its file, such as ``the best placement``; empty if the file does not say."""
    run: RecordedRun
    """The run that it was made from."""
    prediction: Prediction
    """The prediction."""

    @property
    def placement(self) -> dict[Role, str]:
        """Full name of the device, or ``recorded``, of each role."""
        return self.prediction.scenario.devices_of(self.run.footprints)

    def fits(self, models: Mapping[str, str]) -> int | None:
        """How many roles lie where the prediction has them; ``None`` if one lies on another emulated device.

        Args:
            models: role -> model of its device, or ``recorded`` for a real one, which may be any; only the
                roles that the recording after has files of.
        """
        placed = {
            role: device_model_name(device, self.run.devices.get(role, RECORDED))
            for role, device in self.placement.items()
            if role in models
        }
        if any(models[role] not in (RECORDED, model) for role, model in placed.items()):
            return None
        return sum(models[role] == model for role, model in placed.items())


def choose_forecast(
    forecasts: Sequence[Forecast], placement: Mapping[str, str] | None, models: Mapping[str, str]
) -> Forecast:
    """The forecast to verify.

    Args:
        forecasts: those of a file, the recommended one first; at least one.
        placement: the one that the user names. Without it, the forecast that has most roles where ``models``
            has them, and none of the emulated ones elsewhere; if there is none, the recommended one.
        models: role -> name of the device's model, or ``recorded`` for a real device.

    Raises:
        TierwiseError: if there is none with that placement, or several and none is recommended.
    """
    file = forecasts[0].file
    if placement is not None:
        named = Scenario(placement=dict(placement))
        matching = [
            forecast
            for forecast in forecasts
            if _devices_by_role(forecast.prediction.scenario, forecast.run)
            == _devices_by_role(named, forecast.run)
        ]
        if not matching:
            raise TierwiseError(
                f"--place: {file} predicts no such placement", f"name one of: {_names(forecasts)}"
            )
        return matching[0]
    emulated = any(model != RECORDED for model in models.values())
    fitting = [
        (fit, forecast) for forecast in forecasts if emulated and (fit := forecast.fits(models)) is not None
    ]
    if not fitting and not forecasts[0].label and len(forecasts) > 1:
        raise TierwiseError(
            f"{file} has {len(forecasts)} predictions", f"choose with --place: {_names(forecasts)}"
        )
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else forecasts[0]


def _devices_by_role(scenario: Scenario, run: RecordedRun) -> dict[str, str]:
    """Full name of the device of each role, and of each table that has one of its own."""
    tables = {name: resolve_device(scenario.placement[name]).name for name in scenario.selected}
    return {**{role.value: device for role, device in scenario.devices_of(run.footprints).items()}, **tables}


def device_model_name(device: str, recorded: str) -> str:
    """Name of a device's model as recordings have it; ``recorded`` is that of the device before the move."""
    return recorded if device == RECORDED else resolve_device(device).profile.summary


def _names(forecasts: Sequence[Forecast]) -> str:
    placements = [forecast.prediction.scenario.placement for forecast in forecasts]
    listed = [",".join(f"{role}={device}" for role, device in placement.items()) for placement in placements]
    return "; ".join(dict.fromkeys(text for text in listed if text))


KINDS = ("advice", "day-advice", "prediction", "ranking", "table-advice")
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
    own = {_file_of(device) for device in (named or {}).values() if profiles.is_profile_path(device)}
    content = _parsed(path)
    try:
        forecasts = [
            Forecast(
                file=path.name,
                label=label,
                run=_run(run, path),
                prediction=_prediction(prediction, path, own),
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
            for label, prediction in _advice_forecasts(content["advice"]):
                yield label, content["recorded"], prediction
        case "table-advice":
            for label, prediction in _table_forecasts(content["advice"]["devices"]):
                yield label, content["recorded"], prediction
        case _:
            answers = {answer["load"]: answer["advice"] for answer in content["day_advice"]["answers"]}
            for load, name in _LOADS.items():
                if advice := answers.get(load):
                    yield from (
                        (f"{label} {name}", advice["run"], prediction)
                        for label, prediction in _advice_forecasts(advice)
                    )


def _advice_forecasts(advice: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    decided, setting = advice["decision"]["option"], advice["decision"].get("setting")
    for move in advice.get("settings", []):
        if move["setting"] == setting:  # which is recommended in place of a move
            yield f"the setting {setting}", move["prediction"]
    named = (("the best placement", advice["best"]), ("the placement for the goal", advice["reaching"]))
    options = [(label, option) for label, option in named if option]
    options.sort(
        key=lambda option: option[1]["placement"] != decided["placement"]
    )  # the recommended one first
    yield from ((label, option["prediction"]) for label, option in options)
    rungs = list(enumerate(advice["ladder"], start=1))
    yield from ((f"step {number} of the ladder", rung["prediction"]) for number, rung in reversed(rungs))
    yield from (("a single move", move["prediction"]) for move in advice["moves"])


def _table_forecasts(devices: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The best sets, that of the device which is named first first, then the others."""
    sets = [
        (each["best"] == place, f"{', '.join(each_set['names'])} on {each['device']}", each_set["prediction"])
        for each in devices
        for place, each_set in enumerate(each["sets"])
    ]
    for _, label, prediction in sorted(sets, key=lambda found: not found[0]):
        yield label, prediction


def _run(content: Any, path: Path) -> RecordedRun:
    """A run whose clients, cores and memory can be asked for in a scenario."""
    run = RecordedRun.model_validate_json(json.dumps(content), strict=True)
    if run.from_waits:
        raise TierwiseError(
            f"{path}: a forecast from an observation, which does not tell the machine and its devices",
            "verify a forecast from a recording",
        )
    Scenario(clients=run.clients, cores=run.cores, memory_bytes=run.memory_bytes)
    return run


def _prediction(content: Any, path: Path, own: set[str]) -> Prediction:
    """A prediction of the file. A scenario opens the files of its devices, so their names come first."""
    for device in content["scenario"]["placement"].values():
        if profiles.is_profile_path(device) and _file_of(device) not in own:
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
    return str(resolved_path(Path(device.partition("#")[0])))


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return first_validation_problem(error)
    return f"{type(error).__name__}: {error}"
