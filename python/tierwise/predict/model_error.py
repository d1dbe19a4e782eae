"""How far predictions were from measurements, as ``tierwise validate`` has calibrated it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from tierwise.model.errors import TierwiseError
from tierwise.model.shipped import DATA
from tierwise.results.measurements import Record

SHIPPED = DATA / "model_error.toml"
"""Measured on the machine that docs/evidence/accuracy.md names."""
FILE_NAME = "model_error.toml"


def own_file() -> Path:
    """Where ``validate --calibrate`` keeps what it measured here; it is used in place of the shipped one."""
    from platformdirs import user_data_path  # slow to import

    return user_data_path("tierwise") / FILE_NAME


ANY = "any"
"""In place of an engine or a path: all of them together, where too few predictions of one are known."""

What = Literal["rate", "p50", "p95", "p99"]
Storage = Literal["emulated", "real"]


def path_between(recorded: Storage, target: Storage) -> str:
    """What kind of storage was recorded and what kind is asked for, as ``real→emulated``."""
    return f"{recorded}→{target}"


class CalibratedError(Record):
    """The error of one figure on one engine, for scenarios as fast as what was recorded, and for others."""

    engine: str
    path: str
    """As :func:`path_between`."""
    what: What
    changes: list[str]
    """What the scenarios changed: ``placement``, ``clients``, …"""
    cases: int = Field(ge=1)
    families: int = Field(default=1, ge=1)
    """Client programs that the cases are of."""
    half_width: float = Field(ge=0.0, allow_inf_nan=False)
    """What |ln(predicted / measured)| exceeds one time in twenty, where the rate is as recorded."""
    per_faster: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    """How much that rises for each factor e by which a predicted rate is above the recorded one."""
    per_slower: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    """The same for each factor e below it."""
    bias: float = 0.0
    """Median of ln(predicted / measured); told, not corrected for."""
    calibrated: str
    """Day, as 2026-11-21."""

    def at(self, speedup: float) -> float:
        """The half width for a predicted rate that is so many times the recorded one."""
        faster = math.log(speedup)
        return self.half_width + self.per_faster * max(faster, 0.0) + self.per_slower * max(-faster, 0.0)


class ModelError(Record):
    """All errors that were calibrated; none before the first validation."""

    errors: list[CalibratedError] = []  # noqa: RUF012  (pydantic copies defaults)

    @classmethod
    def read(cls, file: Path | None = None) -> ModelError:
        """Read what was calibrated: here, else what ships; nothing if a given file is not there.

        Raises:
            TierwiseError: a file that is not as it should be.
        """
        if file is None:
            file = own_file() if own_file().exists() else SHIPPED
        if not file.exists():
            return cls()
        try:
            return cls.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            first = str(error).splitlines()[0]
            raise TierwiseError(
                f"{file}: {first}", "run tierwise validate again, or remove the file"
            ) from None

    def find(self, engine: str, path: str, what: What) -> CalibratedError | None:
        """The error that was calibrated of an engine on a path, if any was; that of another says nothing."""
        known = (one for one in self.errors if (one.engine, one.path, one.what) == (engine, path, what))
        return next(known, None)

    def nearest(self, engine: str, path: str, what: What) -> CalibratedError | None:
        """The same, else the error of all engines on that path, else of all engines on all paths."""
        return self.find(engine, path, what) or self.find(ANY, path, what) or self.find(ANY, ANY, what)

    def uncalibrated(self, engine: str, path: str, changes: Iterable[str]) -> list[str]:
        """Which of these changes no validation has tried."""
        known = self.find(engine, path, "rate")
        return [change for change in changes if known is None or change not in known.changes]
