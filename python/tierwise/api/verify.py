"""A forecast against a recording taken after the move, from Python."""

from __future__ import annotations

from pathlib import Path

from tierwise.advise import Verification
from tierwise.advise import verify as verify_forecast
from tierwise.api.views import View
from tierwise.model.placement import parse_place
from tierwise.report.recording.verification import verification_document


def verify(
    forecast: str | Path, recording: str | Path, place: dict[str, str] | str | None = None
) -> View[Verification]:
    """Compare a forecast with what came of it, and if they differ, say why.

    Args:
        forecast: file that ``tierwise advise`` or ``predict`` printed with ``--format json``.
        recording: folder of a recording taken after the move.
        place: the placement of the file to verify; by default the one that fits the recorded devices, else
            the recommended one.

    Raises:
        TierwiseError: as ``tierwise verify``.
    """
    wanted = parse_place(place) if isinstance(place, str) else place
    found = verify_forecast(Path(forecast), Path(recording), wanted)
    return View(found, verification_document(found), "verification")
