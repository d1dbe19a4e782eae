"""Devices from Python: profiles, their figures, simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tierwise.api.views import Rows
from tierwise.device_models import profiles
from tierwise.device_models.profiles import Profile
from tierwise.device_models.simulation import DeviceSummary, Job, Simulation, simulate, summarize
from tierwise.model.errors import TierwiseError
from tierwise.model.names import one_of
from tierwise.report.devices import devices_document


class Device:
    """A device on virtual time."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def simulate(self, preset: str | None = None, **job: Any) -> Simulation:
        """Run requests through the device's model.

        Args:
            preset: for example ``randread-4k-qd32``.
            job: further fields of :class:`~tierwise.device_models.simulation.Job`, such as ``count``,
                ``requests`` (a file), ``precondition``.

        Raises:
            TierwiseError: an invalid option or an unusable file.
        """
        known = [name for name in Job.__dataclass_fields__ if name != "preset"]
        for name in job:
            if name not in known:
                raise TierwiseError(f"{name} is no field of a job", one_of(name, known))
        try:
            return simulate(self.profile, Job(preset=preset, **job))
        except RuntimeError as error:  # of a field of another type
            raise TierwiseError(f"a field of the job: {error}", "see tierwise device simulate -h") from None


def device(name_or_path: str | Path) -> Device:
    """A device by the full or short name of its profile, or by the path of a TOML file."""
    return Device(profiles.load(str(name_or_path)))


def devices() -> Rows[DeviceSummary]:
    """The device profiles that ship with tierwise, with figures found by simulating each."""
    summaries = summarize([profiles.load(name) for name in profiles.names()])
    rows = [
        {
            "device": summary.name,
            "kind": summary.kind,
            "capacity_bytes": summary.capacity_bytes,
            **summary.figures.model_dump(),
        }
        for summary in summaries
    ]
    return Rows(summaries, devices_document(summaries), "devices", rows)
