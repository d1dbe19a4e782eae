"""``tierwise device probe``: measure a real device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.options import FixedSeed, OutputFile, duration_s, progress_console
from tierwise.cli.output import Format, FormatOption, show, warn, write_file
from tierwise.cli.printing import echo
from tierwise.host import clean
from tierwise.model.extras import require
from tierwise.model.units import parse_size_bytes
from tierwise.probe import SWEEP, Options
from tierwise.probe import probe as run_probe
from tierwise.report.devices import probe_document


def probe(
    path: Annotated[Path, typer.Argument(help="directory on the device, or a block device with --destroy")],
    *,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="time to measure; filling the file takes extra time")
    ] = "60s",
    size: Annotated[
        str | None, typer.Option(help="size of the file, for example 4G; default 1G if there is room")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="repeats of each figure, interleaved")] = 5,
    pattern: Annotated[
        list[str] | None,
        typer.Option(help="further access pattern, for example mixed70-4k-qd16; may be repeated"),
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="also measure 4 KiB to 1 MiB at depths 1 to 64")
    ] = False,
    output: OutputFile = None,
    destroy: Annotated[bool, typer.Option("--destroy", help="overwrite the block device PATH")] = False,
    no_fill: Annotated[
        bool, typer.Option("--no-fill", help="skip writing the block device before measuring")
    ] = False,
    engine: Annotated[
        str | None, typer.Option(help="io_uring or threads; default: the best available")
    ] = None,
    seed: FixedSeed = 0,
    format: FormatOption = Format.TEXT,
) -> None:
    """Measure the device under PATH: rates, latencies, and whether a flush can be believed.

    A file is made in PATH and removed again; no other is touched. -o writes a profile of the device.
    """
    require("lab", "device probe", ["numpy"])
    clean.clean_before(warn)
    options = Options(
        seconds=duration_s(duration, "--duration") or 0.0,
        size_bytes=None if size is None else parse_size_bytes(size, "--size"),
        repeats=repeats,
        extra=(*(pattern or ()), *(SWEEP if sweep else ())),
        destroy=destroy,
        fill=not no_fill,
        fit=output is not None or format is Format.JSON,
        engine=engine,
        seed=seed,
    )
    with progress_console(to_stderr=True).status("looking", spinner="line") as status:
        report = run_probe(path, options, status.update)
    if output is not None and report.profile is not None:
        echo(f"profile: {write_file(output, report.profile.encode())}", err=True)
    show(probe_document(report), report.model_dump(mode="json"), "probe", format)
