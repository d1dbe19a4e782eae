"""The recording after a move, replayed under the conditions of the forecast.

A difference is undone by replaying the recording after with the forecast's condition instead of its own. The
share of the gap that this closes says how much the difference explains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from statistics import fmean
from typing import Any, Literal

from tierwise.advise.forecast_file import Forecast, device_model_name
from tierwise.model.names import join_words
from tierwise.model.placement import ROLE_NAMES, Role
from tierwise.predict import RECORDED, Prediction, Predictor, RecordedRun, Scenario, resolve_device
from tierwise.predict.database_settings import choose_settings
from tierwise.predict.prediction import RoleLoad
from tierwise.predict.simulator_output import CHANCE
from tierwise.results.measurements import StrictModel

Kind = Literal["clients", "arrivals", "cores", "memory", "setting", "placement", "device"]


class ConditionDifference(StrictModel):
    """One condition that is not as the forecast has it."""

    kind: Kind
    """What differs."""
    role: Role | None = None
    """Of a misplaced file, or the role whose device makes most of the difference."""
    predicted: float | str
    """Clients, arrivals a second, cores, bytes of memory; ``NAME=VALUE`` of a setting; the device of a
    placement; µs a request."""
    measured: float | str
    """The same in the recording after."""
    beside: list[Role] = []
    """Roles on the device of a misplaced file that the forecast has elsewhere."""
    rate_per_s: float | None
    """Rate of the recording after, replayed with this difference undone; ``None`` if a replay cannot."""
    closes: float | None
    """Share of the gap between measured and predicted rate that this closes; above 1 it goes beyond."""


class RoleServiceTimes(StrictModel):
    """Time that its device was busy for each request of a role, in µs."""

    role: Role
    """Role of the files."""
    device: str
    """In the forecast."""
    predicted_us: float | None
    """In the forecast, with its load."""
    measured_us: float | None
    """In the recording after."""
    simulated_us: float | None
    """On the forecast's simulated device, with the load of the recording after; ``None`` if not moved."""


class WorkChange(StrictModel):
    """A part of a transaction's work that is not as it was."""

    what: Literal["requests", "processor time", "reads", "writes", "flushes", "bytes written"]
    """``requests`` of the client; reads, writes, flushes and bytes are those of a role at its device."""
    role: Role | None
    """``None`` for requests of the client and processor time."""
    predicted: float
    """For each transaction, in the forecast; processor time in µs."""
    measured: float
    """The same in the recording after."""


_MEMORY_SHARE = 0.02
"""Share by which the same memory differs: kernels reserve different parts of it."""
_OTHER_WORK = 1.25
"""Judgement: factor from which a part of a transaction's work counts as changed."""
_OTHER_DEVICE = 1.5
"""Judgement: factor from which the time of a request shows another device."""
_LEAST_BUSY = 0.05
"""Judgement: a device that is less busy decides no rate."""
_LEAST_A_TRANSACTION = 0.05
"""Judgement: rarer requests of a transaction are left out, as chance decides them."""


def condition_differences(forecast: Forecast, after: RecordingAfterMove) -> list[ConditionDifference]:
    """Clients (or arrivals), cores, memory and settings that differ."""
    scenario, before, now = forecast.prediction.scenario, forecast.run, after.run
    clients, cores = scenario.clients or before.clients, scenario.cores or before.cores
    memory_bytes = scenario.memory_bytes or before.memory_bytes
    differences = []
    if scenario.rate_per_s is not None:
        if abs(now.rate_per_s / scenario.rate_per_s - 1) > CHANCE:
            asked = {"rate_per_s": scenario.rate_per_s}
            differences.append(_undone("arrivals", scenario.rate_per_s, now.rate_per_s, after, asked))
    elif clients != now.clients:
        differences.append(_undone("clients", clients, now.clients, after, {"clients": clients}))
    if cores != now.cores:
        differences.append(_undone("cores", cores, now.cores, after, {"cores": cores}))
    if abs(memory_bytes / now.memory_bytes - 1) > _MEMORY_SHARE:
        asked_bytes = {"memory_bytes": memory_bytes}
        differences.append(_undone("memory", memory_bytes, now.memory_bytes, after, asked_bytes))
    if before.engine == now.engine and scenario.settings:
        unset = [
            setting
            for setting in choose_settings(scenario.settings, after.predictor.about)
            if setting.now is not None and not setting.is_set
        ]
        differences += [
            _undone("setting", each.text, f"{each.setting.name}={each.now}", after, {"settings": [each.text]})
            for each in unset
        ]
        if len(unset) > 1:
            after.without(settings=[each.text for each in unset])
    return differences


def misplaced_roles(forecast: Forecast, after: RecordingAfterMove) -> list[ConditionDifference]:
    """Roles that are not where the forecast has them, and devices that are not as their profiles."""
    if not after.placement:
        return list(_where(forecast, after, None))
    replayed = after.on_forecast_devices
    places = list(_where(forecast, after, replayed))
    if places:
        after.without(placement=after.placement)
        return places
    before = after.predictor.as_recorded.rate_per_s
    if replayed is None or replayed.rate_per_s is None or before is None:
        return []
    if abs(replayed.rate_per_s.value / before.value - 1) <= CHANCE:
        return []
    after.without(placement=after.placement)
    slowest = max(
        after.role_times(),
        key=lambda role_time: _time_lost(role_time, after.predictor.as_recorded.io[role_time.role]),
    )
    return [
        ConditionDifference(
            kind="device",
            role=slowest.role,
            predicted=slowest.simulated_us or 0.0,
            measured=slowest.measured_us or 0.0,
            rate_per_s=replayed.rate_per_s.value,
            closes=after.closes(replayed),
        )
    ]


def changed_devices(forecast: Forecast, undone: Prediction | None) -> list[ConditionDifference]:
    """Devices that the forecast has as recorded and that take another time for a request now.

    Both sides are under the conditions of the forecast. No replay can undo it, because the forecast's file
    does not hold the device before.
    """
    differences = []
    for role, load in forecast.prediction.io.items():
        now = undone.io.get(role) if undone else None
        if load.device != RECORDED or now is None or max(load.busy_share, now.busy_share) < _LEAST_BUSY:
            continue
        before_us, now_us = busy_us_per_request(load), busy_us_per_request(now)
        if before_us and now_us and max(before_us / now_us, now_us / before_us) >= _OTHER_DEVICE:
            difference = ConditionDifference(
                kind="device", role=role, predicted=before_us, measured=now_us, rate_per_s=None, closes=None
            )
            differences.append(difference)
    return differences


def work_changes(forecast: Forecast, now: RecordedRun, undone: Prediction | None) -> list[WorkChange]:
    """How a transaction's work differs; both sides are replayed under the conditions of the forecast."""
    before = forecast.run
    changes = []
    if before.requests_per_transaction and now.requests_per_transaction:
        pair = before.requests_per_transaction, now.requests_per_transaction
        changes.append(_change("requests", None, *pair))
    if before.cpu_us and now.cpu_us:
        changes.append(_change("processor time", None, before.cpu_us, now.cpu_us))
    if undone is not None and not undone.once:
        changes += _requests(forecast.prediction, undone)
    return [change for change in changes if change is not None]


def _undone(
    kind: Kind,
    predicted: float | str,
    measured: float | str,
    after: RecordingAfterMove,
    asked: dict[str, Any],
) -> ConditionDifference:
    replayed = after.without(**asked)
    return ConditionDifference(
        kind=kind,
        predicted=predicted,
        measured=measured,
        rate_per_s=replayed.rate_per_s.value if replayed and replayed.rate_per_s else None,
        closes=after.closes(replayed),
    )


def _where(
    forecast: Forecast, after: RecordingAfterMove, replayed: Prediction | None
) -> Iterator[ConditionDifference]:
    """A line for each role that lies elsewhere."""
    placed = forecast.prediction.scenario.devices_of(after.predictor.work.footprints)
    disks = {role: device for device in after.predictor.about.devices for role in device.roles}
    for role, device in placed.items():
        held = after.run.devices.get(role, RECORDED)
        expected = device_model_name(device, forecast.run.devices.get(role, RECORDED))
        elsewhere, beside = "", list[Role]()
        if held != RECORDED and expected not in (RECORDED, held):
            elsewhere = held
        elif device != RECORDED and held == RECORDED and role in disks:
            beside = [
                other
                for other, place in placed.items()
                if place != device and other in disks and disks[other].shared == disks[role].shared
            ]
            turns = any(link.rotational for link in disks[role].chain)
            if beside:
                elsewhere = f"the device of {join_words([ROLE_NAMES[other] for other in beside])}"
            elif turns and resolve_device(device).profile.kind in ("ssd", "ram"):
                elsewhere = "a rotational disk"
        if elsewhere:
            undone = replayed if device != RECORDED else None  # the forecast does not hold that device
            yield ConditionDifference(
                kind="placement",
                role=role,
                predicted=device if device != RECORDED else expected,
                measured=elsewhere,
                beside=beside,
                rate_per_s=undone.rate_per_s.value if undone and undone.rate_per_s else None,
                closes=after.closes(undone),
            )


def _time_lost(times: RoleServiceTimes, load: RoleLoad) -> float:
    """Seconds a second by which the requests of a moved role differ from those of the simulated device."""
    if times.simulated_us is None or times.measured_us is None:
        return 0.0
    return abs(times.measured_us - times.simulated_us) * load.requests_per_s


def _requests(predicted: Prediction, undone: Prediction) -> Iterator[WorkChange | None]:
    """Requests of a transaction at the devices, by role."""
    before_per_s, now_per_s = fmean(predicted.seed_rates_per_s), fmean(undone.seed_rates_per_s)
    for role in Role:
        before, now = predicted.io.get(role), undone.io.get(role)
        for what in ("reads", "writes", "flushes"):
            field = f"{what}_per_s"
            was = getattr(before, field) / before_per_s if before else 0.0
            became = getattr(now, field) / now_per_s if now else 0.0
            if max(was, became) >= _LEAST_A_TRANSACTION:
                yield _change(what, role, was, became)


def _change(what: Any, role: Role | None, before: float, now: float) -> WorkChange | None:
    low, high = sorted((before, now))
    if low > 0 and high / low < _OTHER_WORK:
        return None
    return WorkChange(what=what, role=role, predicted=before, measured=now)


class RecordingAfterMove:
    """The recording after a move, replayed under the conditions of the forecast.

    A difference is undone by replaying the recording after with the forecast's condition instead of its own.
    The share of the gap that this closes says how much the difference explains.

    Args:
        forecast: what was predicted.
        predictor: of the recording after.
    """

    def __init__(self, forecast: Forecast, predictor: Predictor) -> None:
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
        """The forecast's device of each role that it moved and that the recording after has files of.

        Tables and indexes are named one by one.
        """
        selected = self._forecast.prediction.scenario.selected
        return {
            name: device
            for role, device in self._moved.items()
            for name in (selected if role is Role.SELECTED else [role.value])
        }

    @cached_property
    def _moved(self) -> dict[Role, str]:
        placed = self._forecast.prediction.scenario.devices_of(self.predictor.work.footprints)
        return {role: device for role, device in placed.items() if device != RECORDED}

    @cached_property
    def on_forecast_devices(self) -> Prediction | None:
        """Replay with the moved roles on the simulated devices of the forecast."""
        return self._replayed({"placement": self.placement}) if self.placement else None

    def role_times(self) -> list[RoleServiceTimes]:
        """Time that a device was busy for each request of a role: measured, and on the forecast's device."""
        recorded = self.predictor.as_recorded.io
        simulated = self.on_forecast_devices.io if self.on_forecast_devices else {}
        predicted = self._forecast.prediction.io
        return [
            RoleServiceTimes(
                role=role,
                device=predicted[role].device if role in predicted else RECORDED,
                predicted_us=busy_us_per_request(predicted.get(role)),
                measured_us=busy_us_per_request(recorded[role]),
                simulated_us=busy_us_per_request(simulated.get(role)) if role in self._moved else None,
            )
            for role in Role
            if role in recorded and recorded[role].requests_per_s
        ]

    def _replayed(self, changes: dict[str, Any]) -> Prediction | None:
        asked = self._forecast.prediction.scenario
        apart = Role.SELECTED in self.predictor.work.footprints
        placement = dict.fromkeys(asked.selected if apart else (), RECORDED) | changes.get("placement", {})
        scenario = Scenario(emulated=asked.emulated, **{**changes, "placement": placement})
        (answer,) = self.predictor.predict([scenario])
        return None if answer.refused else answer


def busy_us_per_request(load: RoleLoad | None) -> float | None:
    """Time that a device is busy for each request; ``None`` without one."""
    if load is None or not load.requests_per_s:
        return None
    return 1e6 * load.busy_share / load.requests_per_s
