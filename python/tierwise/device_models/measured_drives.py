"""Profiles from drives that others measured: geometry (JSON) and seek times (CSV)."""

from __future__ import annotations

from pathlib import Path

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.results.measurements import Record

_FIX = "give a file of the form that docs/how-to/own-device.md describes"


class ImportedDrive(Record):
    """A profile made from the files of a measured drive."""

    kind: str
    """Kind of the device."""
    summary: str
    """One line about the drive."""
    capacity_bytes: int
    """Addressable size, in bytes."""
    text: str
    """The profile, as TOML."""


def import_drive(geometry: Path, seek: Path) -> ImportedDrive:
    """Make a profile from the files of a drive.

    Args:
        geometry: JSON with the surfaces, zones, mechanics, cache and overheads of a drive.
        seek: CSV with the columns ``distance_cylinders,seek_ms``.

    Raises:
        TierwiseError: an unreadable file, or one with an invalid line or field.
    """
    texts = {"geometry": _read(geometry), "seek": _read(seek)}
    try:
        text = _core.import_drive(texts["geometry"], texts["seek"])
    except ValueError as error:
        which, problem = error.args
        raise TierwiseError(f"{geometry if which == 'geometry' else seek}: {problem}", _FIX) from None
    found = profiles.parse(text, geometry)
    return ImportedDrive(
        kind=found.kind, summary=found.summary, capacity_bytes=found.capacity_bytes, text=text
    )


def _read(file: Path) -> str:
    return read_text(file, "give a readable text file")
