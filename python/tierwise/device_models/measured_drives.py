"""Profiles from drives that others measured: geometry (JSON) and seek times (CSV)."""

from __future__ import annotations

from pathlib import Path

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text

_FIX = "give a file of the form that docs/evidence/models.md describes"


def import_drive(geometry: Path, seek: Path) -> str:
    """Return the text of the profile for a drive.

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
    profiles.parse(text, geometry)
    return text


def _read(file: Path) -> str:
    return read_text(file, "give a readable text file")
