"""The recording after a move, replayed under the conditions of the forecast.

A difference is undone by replaying the recording after with the forecast's condition instead of its own. The
share of the gap that this closes says how much the difference explains.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from tierwise.advise.differences_records import RoleTimes
from tierwise.advise.forecast import Forecast
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Prediction, Predictor, Scenario
from tierwise.predict.prediction import RoleLoad
from tierwise.predict.time_shares import CHANCE


class After:
    """The recording after, and its replays.

    Args:
        forecast: what was predicted.
        predictor: of the recording after.
    """

    def __init__(self, forecast: Forecast, predictor: Predictor) -> None:
        """Replay nothing yet."""
        self.predictor, self.run = predictor, predictor.run
        self._forecast = forecast
        self._changes: dict[str, Any] = {}

    def without(self, **changes: Any) -> Prediction | None:
        """Replay with one difference undone, and remember it for :attr:`undone`; ``None`` if refused."""
        self._changes |= changes
        return self._replayed(changes)

    @cached_property
    def undone(self) -> Prediction | None:
        """Replay with all differences undone that were asked for; the recorded run if there were none."""
        return self._replayed(self._changes) if self._changes else self.predictor.as_recorded

    def closes(self, undone: Prediction | None) -> float | None:
        """Share of the gap between measured and predicted rate that a replay closes, on a scale of factors.

        ``None`` if there is no replay, or the gap is no wider than chance.
        """
        before, predicted = self.predictor.as_recorded.rate_per_s, self._forecast.prediction.rate_per_s
        if undone is None or undone.rate_per_s is None or before is None or predicted is None:
            return None
        gap = math.log(predicted.value / before.value)
        return None if abs(gap) <= CHANCE else math.log(undone.rate_per_s.value / before.value) / gap

    @cached_property
    def placement(self) -> dict[str, str]:
        """The forecast's device of each role that it moved and that the recording after has files of."""
        placed = self._forecast.prediction.scenario.devices_of(self.run.footprints)
        return {role.value: device for role, device in placed.items() if device != RECORDED}

    @cached_property
    def on_forecast_devices(self) -> Prediction | None:
        """Replay with the moved roles on the simulated devices of the forecast."""
        return self._replayed({"placement": self.placement}) if self.placement else None

    def role_times(self) -> list[RoleTimes]:
        """Time that a device was busy for each request of a role: measured, and on the forecast's device."""
        recorded = self.predictor.as_recorded.io
        simulated = self.on_forecast_devices.io if self.on_forecast_devices else {}
        predicted = self._forecast.prediction.io
        return [
            RoleTimes(
                role=role,
                device=predicted[role].device if role in predicted else RECORDED,
                predicted_us=busy_us(predicted.get(role)),
                measured_us=busy_us(recorded[role]),
                simulated_us=busy_us(simulated.get(role)) if role.value in self.placement else None,
            )
            for role in Role
            if role in recorded and requests_per_s(recorded[role])
        ]

    def _replayed(self, changes: dict[str, Any]) -> Prediction | None:
        scenario = Scenario(emulated=self._forecast.prediction.scenario.emulated, **changes)
        (answer,) = self.predictor.predict([scenario])
        return None if answer.refused else answer


def requests_per_s(load: RoleLoad) -> float:
    """Reads, writes and flushes of a role."""
    return load.reads_per_s + load.writes_per_s + load.flushes_per_s


def busy_us(load: RoleLoad | None) -> float | None:
    """Time that a device is busy for each request; ``None`` without one."""
    if load is None or not requests_per_s(load):
        return None
    return 1e6 * load.busy_share / requests_per_s(load)
