"""Options with the same meaning in every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.model.units import parse_duration_s

Output = Annotated[Path, typer.Option("-o", "--output", help="directory for results")]
OutputFile = Annotated[Path | None, typer.Option("-o", "--output", help="file to write")]
Duration = Annotated[str | None, typer.Option("--duration", metavar="TIME", help="for example 30s or 10min")]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=2**63 - 1, help="seed of the random number generator; random by default"
    ),
]
FixedSeed = Annotated[
    int, typer.Option("--seed", min=0, max=2**63 - 1, help="seed of the random number generator")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="print the actions without doing them")]
Png = Annotated[Path | None, typer.Option("--png", help="file to draw the chart into")]


def duration_s(text: str | None, option: str) -> float | None:
    """Seconds in the value of an option; ``None`` if it was not given."""
    return None if text is None else parse_duration_s(text, option)
