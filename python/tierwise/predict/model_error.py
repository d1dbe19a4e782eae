"""Error of predictions against measurements, as calibrated by ``tierwise validate``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from tierwise.model.input_files import DATA, parse_as_model, parse_toml, read_text
from tierwise.results.measurements import StrictModel

SHIPPED = DATA / "model_error.toml"
"""Of rounds before docs/evidence/accuracy.md was measured in slots."""
FILE_NAME = "model_error.toml"
_FIX = "run tierwise validate again, or remove the file"


def own_file() -> Path:
    """File of the errors that ``validate --calibrate`` measured here; it replaces the shipped one."""
    from platformdirs import user_data_path  # slow to import

    return user_data_path("tierwise") / FILE_NAME


ANY = "any"
"""Stands for all engines or all paths together, if a single one has too few predictions."""

What = Literal["rate", "p50", "p95", "p99"]
Storage = Literal["emulated", "real"]


def storage_transition(recorded: Storage, target: Storage) -> str:
    """Kinds of the recorded and the target storage, as ``real→emulated``."""
    return f"{recorded}→{target}"


class CalibratedError(StrictModel):
    """The error of one figure on one engine, as a function of how far it depends on processor time."""

    engine: str
    path: str
    """As :func:`storage_transition`."""
    what: What
    changes: list[str]
    """What the scenarios changed: ``placement``, ``clients``, …"""
    cases: int = Field(ge=1)
    families: int = Field(default=1, ge=1)
    """Number of client programs in the cases."""
    half_width: float = Field(ge=0.0, allow_inf_nan=False)
    """95th percentile of |ln(predicted / measured)| if sessions compute for no larger part of their time."""
    per_computing: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    """Increase of ``half_width`` if they compute all the time and did not at all."""
    bias: float = 0.0
    """Median of ln(predicted / measured); reported, not corrected for."""
    calibrated: str
    """Date, such as 2026-11-21."""

    def at(self, gained: float) -> float:
        """The half width where sessions compute for ``gained`` more of their time than recorded."""
        return self.half_width + self.per_computing * gained


class ModelError(StrictModel):
    """All errors that were calibrated; none before the first validation."""

    errors: list[CalibratedError] = []

    @classmethod
    def read(cls, file: Path | None = None) -> ModelError:
        """Read the errors calibrated here, else the shipped ones; none if a given file is missing."""
        if file is None:
            file = own_file() if own_file().exists() else SHIPPED
        if not file.exists():
            return cls()
        return parse_as_model(cls, parse_toml(read_text(file, _FIX), str(file)), str(file), _FIX)

    def find(self, engine: str, path: str, what: What) -> CalibratedError | None:
        """The calibrated error of exactly this engine and path, if there is one."""
        known = (
            error for error in self.errors if (error.engine, error.path, error.what) == (engine, path, what)
        )
        return next(known, None)

    def nearest(self, engine: str, path: str, what: What) -> CalibratedError | None:
        """The same, else the error of all engines on that path, else of all engines on all paths."""
        return self.find(engine, path, what) or self.find(ANY, path, what) or self.find(ANY, ANY, what)

    def uncalibrated(self, engine: str, path: str, changes: Iterable[str]) -> list[str]:
        """The changes among these that no validation has tried."""
        known = self.find(engine, path, "rate")
        return [change for change in changes if known is None or change not in known.changes]
