"""``tierwise verify``: a forecast against a recording taken after the move."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise.verification import verify as verify_forecast
from tierwise.cli.output import Format, FormatOption, show
from tierwise.model.placement import parse_place
from tierwise.predict.predictor import SEEDS
from tierwise.report.recording.verification import verification_document


def verify(
    forecast: Annotated[
        Path,
        typer.Argument(metavar="ADVICE", help="file that advise or predict printed with --format json"),
    ],
    recording: Annotated[
        Path, typer.Argument(metavar="RECORDING-AFTER", help="recording taken after the move")
    ],
    *,
    place: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=DEVICE,…",
            help="the placement of ADVICE to verify; by default the one that fits the recorded devices, else "
            "the recommended one",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="simulation runs for each replay")] = SEEDS,
    format: FormatOption = Format.TEXT,
) -> None:
    """Compare a forecast with what came of it, and if they differ, say why.

    Exit status 1 if a measured figure lies outside its interval.
    """
    verification = verify_forecast(
        forecast, recording, parse_place(place) if place is not None else None, seeds=seeds
    )
    show(
        verification_document(verification),
        {"verification": verification.model_dump(mode="json")},
        "verification",
        format,
    )
    if not verification.inside:
        raise typer.Exit(1)
