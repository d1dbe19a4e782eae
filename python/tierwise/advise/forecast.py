"""The predictions that a file holds, and the one of them that a move followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Prediction, RecordedRun, Scenario, resolve
from tierwise.results.measurements import Record


class Forecast(Record):
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
            role: model_of(device, self.run.devices.get(role, RECORDED))
            for role, device in self.placement.items()
            if role in models
        }
        if any(models[role] not in (RECORDED, model) for role, model in placed.items()):
            return None
        return sum(models[role] == model for role, model in placed.items())


def choose(
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
            if forecast.placement == named.devices_of(forecast.run.footprints)
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


def model_of(device: str, recorded: str) -> str:
    """Name of a device's model as recordings have it; ``recorded`` is that of the device before the move."""
    return recorded if device == RECORDED else resolve(device).profile.summary


def _names(forecasts: Sequence[Forecast]) -> str:
    placements = [forecast.prediction.scenario.placement for forecast in forecasts]
    listed = [",".join(f"{role}={device}" for role, device in placement.items()) for placement in placements]
    return "; ".join(dict.fromkeys(text for text in listed if text))
