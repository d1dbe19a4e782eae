"""Devices from Python: profiles, their figures, simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tierwise.api.arguments import errors_naming_arguments
from tierwise.api.views import Rows
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import (
    DeviceSummary,
    SimulationFigures,
    SimulationJob,
    simulate_job,
    summarize_devices,
)
from tierwise.device_models.profiles import DeviceProfile
from tierwise.model.errors import TierwiseError
from tierwise.model.names import unknown_name_fix
from tierwise.report.device_report import devices_document


class Device:
    """A device on virtual time."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile

    @errors_naming_arguments()
    def simulate(self, preset: str | None = None, **job: Any) -> SimulationFigures:
        """Run requests through the device's model.

        Args:
            preset: for example ``randread-4k-qd32``.
            job: further fields of
                :class:`~tierwise.device_models.device_simulation.SimulationJob`, such as ``count``,
                ``requests`` (a file), ``precondition``.

        Raises:
            TierwiseError: an invalid option or an unusable file.
        """
        known = [name for name in SimulationJob.__dataclass_fields__ if name != "preset"]
        for name in job:
            if name not in known:
                raise TierwiseError(f"{name} is no field of a job", unknown_name_fix(name, known))
        try:
            return simulate_job(self.profile, SimulationJob(preset=preset, **job))
        except (RuntimeError, TypeError) as error:  # of a field of another type
            raise TierwiseError(f"a field of the job: {error}", "see tierwise device simulate -h") from None


def device(name_or_path: str | Path) -> Device:
    """A device by the full or short name of its profile, or by the path of a TOML file."""
    return Device(profiles.load_profile(str(name_or_path)))


def devices() -> Rows[DeviceSummary]:
    """The device profiles that ship with tierwise, with figures found by simulating each."""
    summaries = summarize_devices([profiles.load_profile(name) for name in profiles.profile_names()])
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
