"""The forecast in a file that ``advise`` or ``predict`` printed as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tierwise.device_models import profiles
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.model.output_version import SCHEMA_VERSION
from tierwise.predict import RECORDED, Prediction, RecordedRun, Scenario, resolve
from tierwise.results.measurements import Record

_MOST = 1e30
_MOST_WHOLE = 1e18
KINDS = ("advice", "prediction", "ranking")
_FIX = "name a file that tierwise advise or predict printed with --format json"


class Forecast(Record):
    """One prediction of a file, and the run that it was made from."""

    file: str
    """Name of the file."""
    label: str
    """What the prediction is in its file, such as ``the best placement``."""
    run: RecordedRun
    prediction: Prediction


class ForecastFile:
    """All predictions of a file, the one that it recommends first."""

    def __init__(self, path: Path, named: Mapping[str, str] | None = None) -> None:
        """Read a file.

        Args:
            path: of the file.
            named: placement that the user names: only its devices may be files.

        Raises:
            TierwiseError: naming the file, if it is none of these, of another version or damaged; or if it
                names a file as a device that the user does not name.
        """
        self._file = path.name
        self._own = {_file_of(one) for one in (named or {}).values() if profiles.is_path(one)}
        found = self._parsed(path)
        try:
            self._run = RecordedRun.model_validate(found["recorded"])
            Scenario(**{name: getattr(self._run, name) for name in ("clients", "cores", "memory_bytes")})
            self._options = [(label, self._prediction(one)) for label, one in _listed(found)]
        except (AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
            raise TierwiseError(f"{path}: not as tierwise prints it ({_first_line(error)})", _FIX) from None

    def choose(self, placement: Mapping[str, str] | None, held: Mapping[str, str]) -> Forecast:
        """The prediction to verify.

        Args:
            placement: the one that the user names; else the first prediction whose moved roles are where
                ``held`` has them, else the recommended one.
            held: role -> name of the device's model, of roles on emulated devices.

        Raises:
            TierwiseError: if the file has no such prediction, or several and recommends none.
        """
        answered = [one for one in self._options if one[1].refused is None and one[1].rate_per_s]
        if not answered:
            raise TierwiseError(f"{self._file}: it holds no prediction that was answered", _FIX)
        if placement is not None:
            wanted = Scenario(placement=dict(placement)).devices_of(self._run.footprints)
            answered = [one for one in answered if self._placed(one[1]) == wanted]
            if not answered:
                raise TierwiseError(
                    f"--place: {self._file} predicts no such placement", f"name one of: {self._names()}"
                )
            return self._forecast(answered[0])
        there = [one for one in answered if held and self._lies(one[1], held)]
        if there:
            return self._forecast(there[0])
        if len({str(self._placed(prediction)) for _, prediction in answered}) > 1 and not answered[0][0]:
            raise TierwiseError(
                f"{self._file} has {len(answered)} predictions", f"choose with --place: {self._names()}"
            )
        return self._forecast(answered[0])

    def _parsed(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(
                read_text(path, _FIX), parse_float=_finite, parse_int=_whole, parse_constant=_finite
            )
        except (ValueError, RecursionError):
            raise TierwiseError(f"{path}: no JSON", _FIX) from None
        kind = found.get("schema") if isinstance(found, dict) else None
        if kind not in KINDS:
            raise TierwiseError(f"{path}: neither advice nor a prediction", _FIX)
        if found.get("schema_version") != SCHEMA_VERSION:
            raise TierwiseError(
                f"{path}: version {found.get('schema_version')} of {kind}, not {SCHEMA_VERSION}",
                "use the tierwise that wrote it",
            )
        return dict(found)

    def _prediction(self, found: dict[str, Any]) -> Prediction:
        """A prediction of the file. A scenario opens the files of its devices, so their names come first."""
        for device in found["scenario"]["placement"].values():
            if profiles.is_path(device) and _file_of(device) not in self._own:
                raise TierwiseError(
                    f"{self._file} names the file {device!r} as a device", "name it too, with --place"
                )
        made = Prediction.model_validate(found)
        figures = [one for one in (made.rate_per_s, made.elapsed_s, made.p50_us, made.p99_us) if one]
        numbers = [
            *made.seed_rates_per_s,
            *(end for one in figures for end in (one.low, one.value, one.high)),
        ]
        if made.refused is None and (not made.seed_rates_per_s or min(numbers) <= 0):
            raise ValueError("a figure that is not above 0")
        return made

    def _placed(self, prediction: Prediction) -> dict[Any, str]:
        return prediction.scenario.devices_of(self._run.footprints)

    def _lies(self, prediction: Prediction, held: Mapping[str, str]) -> bool:
        """Whether every role is on the model that the prediction names, or where it was recorded."""
        return all(
            model_of(device, self._run.devices.get(role, "")) == held.get(role)
            for role, device in self._placed(prediction).items()
        )

    def _names(self) -> str:
        placements = [one.scenario.placement for _, one in self._options if one.refused is None]
        listed = [",".join(f"{role}={device}" for role, device in one.items()) for one in placements]
        return "; ".join(dict.fromkeys(one for one in listed if one))

    def _forecast(self, option: tuple[str, Prediction]) -> Forecast:
        return Forecast(file=self._file, label=option[0], run=self._run, prediction=option[1])


def model_of(device: str, recorded: str) -> str:
    """Name of a device's model as recordings have it; ``recorded`` is that of the device before the move."""
    return recorded if device == RECORDED else resolve(device).profile.summary


def _listed(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Label and prediction; a label is empty where the file recommends none of several."""
    if found["schema"] == "prediction":
        yield from (("", one) for one in found["predictions"])
    elif found["schema"] == "ranking":
        yield from (
            ("the best of the ranking" if number == 1 else f"rank {number}", one)
            for number, one in enumerate(found["ranking"]["closer"], start=1)
        )
    else:
        advice = found["advice"]
        for name, label in (("best", "the best placement"), ("reaching", "the placement for the goal")):
            if advice[name]:
                yield label, advice[name]["prediction"]
        rungs = list(enumerate(advice["ladder"], start=1))
        yield from ((f"step {number} of the ladder", one["prediction"]) for number, one in reversed(rungs))
        yield from (("a single move", one["prediction"]) for one in advice["moves"])


def _finite(text: str) -> float:
    """A number of a size that figures have: products and ratios of a few of them are finite."""
    value = float(text)
    if value and not 1 / _MOST <= abs(value) <= _MOST:
        raise ValueError(text)
    return value


def _whole(text: str) -> int:
    if abs(_finite(text)) > _MOST_WHOLE:
        raise ValueError(text)
    return int(text)


def _file_of(device: str) -> str:
    return str(Path(device.partition("#")[0]).resolve())


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}: {error}"
