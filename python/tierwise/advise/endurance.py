"""Lifetime of an SSD under the predicted writes: the maker's endurance over the rate of writes."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.predict import RECORDED, Prediction, resolve
from tierwise.results.measurements import Record

SECONDS_PER_MONTH = 365.25 * 24 * 3600 / 12
_TB = 1e12


class Wear(Record):
    """Writes to one device, if the recorded load went on without a pause."""

    device: str
    written_bytes_per_month: float
    endurance_tb_written: float | None
    """The maker's figure; ``None`` if there is none, or if writes do not wear the device out."""
    months: float | None
    """Time until that is written; ``None`` if there is no figure or nothing is written."""


def wear(prediction: Prediction, devices: Sequence[str]) -> list[Wear]:
    """The wear of each device that a prediction places files on, except the recorded ones.

    Args:
        prediction: with what each role writes.
        devices: full names, in the order wanted.
    """
    written = written_bytes_per_s(prediction)
    return [_wear(device, written[device]) for device in devices if device != RECORDED and device in written]


def written_bytes_per_s(prediction: Prediction) -> dict[str, float]:
    """What the predicted load writes to each device."""
    written: dict[str, float] = {}
    for load in prediction.io.values():
        written[load.device] = written.get(load.device, 0.0) + load.written_bytes_per_s
    return written


def lifetime_months(device: str, written_bytes_per_s: float) -> float | None:
    """Months until the maker's endurance is written; ``None`` if there is no figure or nothing is written."""
    endurance = resolve(device).profile.endurance_tb_written
    per_month = written_bytes_per_s * SECONDS_PER_MONTH
    return endurance * _TB / per_month if endurance and per_month > 0 else None


def _wear(device: str, written_bytes_per_s: float) -> Wear:
    return Wear(
        device=device,
        written_bytes_per_month=written_bytes_per_s * SECONDS_PER_MONTH,
        endurance_tb_written=resolve(device).profile.endurance_tb_written,
        months=lifetime_months(device, written_bytes_per_s),
    )
