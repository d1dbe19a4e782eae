"""Wear: the writes to each device, and the time until they use up its maker's endurance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.model.names import sum_by_key
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Prediction, resolve_device
from tierwise.results.measurements import StrictModel

SECONDS_PER_MONTH = 365.25 * 24 * 3600 / 12
_TB = 1e12


class DeviceWear(StrictModel):
    """Writes to one device, if the load went on without a pause."""

    device: str
    written_bytes_per_month: float
    """At the recorded rate of work: what a load that does not grow with the speed writes."""
    endurance_tb_written: float | None
    """The maker's figure; ``None`` if there is none, or if writes do not wear the device out."""
    months: float | None
    """Time until that is written; ``None`` if there is no figure or nothing is written."""
    predicted_bytes_per_month: float
    """At the predicted rate of work: what a load that fills the new speed writes."""
    predicted_months: float | None
    """Time until the maker's figure is written then."""


def device_wear(
    prediction: Prediction, devices: Sequence[str], recorded: Mapping[Role, float]
) -> list[DeviceWear]:
    """The wear of each device that a prediction places files on, except the recorded ones.

    Args:
        prediction: with what each role writes.
        devices: full names, in the order wanted.
        recorded: bytes a second that the recorded load writes to each role.
    """
    placed = {role: load.device for role, load in prediction.io.items()}
    at_recorded_rate = write_rates_by_device(placed, recorded)
    predicted = write_rates_by_device(placed, predicted_write_rates(prediction))
    return [
        DeviceWear(
            device=device,
            written_bytes_per_month=at_recorded_rate[device] * SECONDS_PER_MONTH,
            endurance_tb_written=resolve_device(device).profile.endurance_tb_written,
            months=device_lifetime_months(device, at_recorded_rate[device]),
            predicted_bytes_per_month=predicted[device] * SECONDS_PER_MONTH,
            predicted_months=device_lifetime_months(device, predicted[device]),
        )
        for device in devices
        if device != RECORDED and device in placed.values()
    ]


def predicted_write_rates(prediction: Prediction) -> dict[Role, float]:
    """Bytes a second that the predicted load writes to each role."""
    return {role: load.written_bytes_per_s for role, load in prediction.io.items()}


def write_rates_by_device(placement: Mapping[Role, str], written: Mapping[Role, float]) -> dict[str, float]:
    """Bytes a second that are written to each device of a placement."""
    return sum_by_key((device, written.get(role, 0.0)) for role, device in placement.items())


def device_lifetime_months(device: str, written_bytes_per_s: float) -> float | None:
    """Months until the maker's endurance is written; ``None`` if there is no figure or nothing is written."""
    endurance = resolve_device(device).profile.endurance_tb_written
    per_month = written_bytes_per_s * SECONDS_PER_MONTH
    return endurance * _TB / per_month if endurance and per_month > 0 else None
