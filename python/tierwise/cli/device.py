"""``tierwise device``: profiles, their simulated figures, and measurements of real devices."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.options import (
    Duration,
    FixedSeed,
    duration_option_s,
    only_from_command_line,
    progress_console,
)
from tierwise.cli.output import (
    FormatOption,
    OutputFile,
    OutputFormat,
    print_result,
    print_warning,
    require_suffix,
)
from tierwise.cli.printing import print_text
from tierwise.device_models import device_simulation, profiles
from tierwise.device_models.device_simulation import SimulationFigures, SimulationJob
from tierwise.device_models.device_simulation import simulate_job as run_simulation
from tierwise.device_models.profiles import DeviceProfile, profile_from_drive_files
from tierwise.host import clean
from tierwise.model.extras import require_extra
from tierwise.model.numbers import NONE, grouped_digits, percent_text
from tierwise.model.units import parse_size_bytes
from tierwise.probe import SWEEP, ProbeOptions
from tierwise.probe import probe_device as run_probe
from tierwise.recording.command_outputs import write_output_file
from tierwise.report.device_report import devices_document, imported_profile_document, probe_document
from tierwise.report.document import Block, Cell, Text, Tone, empty_table, figure_cell
from tierwise.results.measurements import Latency

ProfileName = Annotated[str, typer.Argument(help="name of a profile, or path of its TOML file")]


def simulate(
    device: ProfileName,
    *,
    requests: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with op (R, W, F or D), lbn, sectors, and optionally think_ms or arrival_us"
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="access pattern: randread-4k, randwrite-8k-qd32, log-append-8k, mixed70-4k, …"),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(min=1, max=10**9, help="number of requests of the preset", show_default="100000"),
    ] = None,
    duration: Duration = None,
    depth: Annotated[int | None, typer.Option(min=1, max=65_536, help="queue depth")] = None,
    open_: Annotated[bool, typer.Option("--open", help="requests arrive at arrival_us")] = False,
    precondition: Annotated[
        str,
        typer.Option(help="state of the device: fresh, or after writes: sequential, random or random:SHARE"),
    ] = "fresh",
    seed: FixedSeed = 0,
    times: Annotated[Path | None, typer.Option(help="CSV file for the time of each request")] = None,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Simulate a device with the requests of a file or of a preset, and say how long they take."""
    profile = profiles.load_profile(device)
    job = SimulationJob(
        requests=requests,
        preset=preset,
        count=count,
        virtual_s=duration_option_s(duration, "--duration"),
        depth=depth,
        open=open_,
        precondition=precondition,
        seed=seed,
        times=times,
    )
    simulation = run_simulation(profile, job)
    print_result(_document(profile, simulation), simulation, "simulation", format)


def _document(device: DeviceProfile, simulation: SimulationFigures) -> list[Block]:
    """Number and service times by kind of request, then the overall figures."""
    tenths = partial(grouped_digits, decimals=1)
    ops = empty_table([""], ["count", "mean ms", "p50", "p95", "p99", "p99.9", "max", "per s", "MB/s"])
    for name, op in simulation.ops.items():
        ops.add(
            name, *_times(op), figure_cell(op.per_second, grouped_digits), figure_cell(op.mb_per_s, tenths)
        )
    if len(simulation.ops) > 1:
        ops.add("all", *_times(simulation), NONE, figure_cell(simulation.mb_per_s, tenths))
    totals = empty_table(["figure", "value"], [])
    for label, value in _figures(simulation):
        totals.add(label, value)
    return [Text(f"{device.name}: {device.summary}", Tone.HEADLINE), ops, totals]


def _times(of: Latency) -> list[Cell]:
    milliseconds = partial(grouped_digits, decimals=3)
    return [
        figure_cell(of.count, grouped_digits),
        *(figure_cell(one_us / 1e3, milliseconds) for one_us in of.figures_us),
    ]


def _figures(simulation: SimulationFigures) -> list[tuple[str, str]]:
    amplification = simulation.write_amplification
    figures = [
        ("virtual time", f"{simulation.virtual_s:,.3f} s, {percent_text(simulation.busy_share)} of it busy"),
        ("reads and writes", f"{simulation.iops:,.0f} per s"),
        ("write amplification", NONE if amplification is None else f"{amplification:.3f}"),
        ("erases", f"{simulation.erases:,}"),
        ("simulated", f"{simulation.requests_per_cpu_s:,.0f} requests per CPU-second"),
    ]
    if simulation.compared is not None:
        compared = simulation.compared
        means = f"mean {compared.model_mean_us / 1e3:,.3f} ms for {compared.measured_mean_us / 1e3:,.3f} ms"
        error = f"demerit {percent_text(compared.demerit)}, request by request {percent_text(compared.each)}"
        figures.append(("against measured times", f"{means}, {error}"))
    return figures


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
    destroy: Annotated[
        bool,
        typer.Option("--destroy", callback=only_from_command_line, help="overwrite the block device PATH"),
    ] = False,
    no_fill: Annotated[
        bool, typer.Option("--no-fill", help="skip writing the block device before measuring")
    ] = False,
    engine: Annotated[
        str | None, typer.Option(help="io_uring or threads; default: the best available")
    ] = None,
    seed: FixedSeed = 0,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Measure the device under PATH: rates, latencies, and whether a flush can be believed.

    A file is made in PATH and removed again; no other is touched. -o writes a profile of the device.
    """
    require_suffix(output, ".toml", "profile")
    require_extra("lab", "device probe", ["numpy"])
    clean.clean_before_operation(print_warning)
    options = ProbeOptions(
        seconds=duration_option_s(duration, "--duration") or 0.0,
        size_bytes=None if size is None else parse_size_bytes(size, "--size"),
        repeats=repeats,
        extra=(*(pattern or ()), *(SWEEP if sweep else ())),
        destroy=destroy,
        fill=not no_fill,
        fit=output is not None or format is OutputFormat.JSON,
        engine=engine,
        seed=seed,
    )
    with progress_console(to_stderr=True).status("looking", spinner="line") as status:
        report = run_probe(path, options, status.update)
    if output is not None and report.profile is not None:
        print_text(f"profile: {write_output_file(output, report.profile.encode())}", err=True)
    print_result(probe_document(report), report, "probe", format)


app = typer.Typer(no_args_is_help=True, help="List, show, simulate, import and probe devices.")


@app.command("list")
def list_profiles(format: FormatOption = OutputFormat.TEXT) -> None:
    """List the device profiles that ship with tierwise, with figures found by simulating each."""
    summaries = device_simulation.summarize_devices(
        [profiles.load_profile(name) for name in profiles.profile_names()]
    )
    print_result(devices_document(summaries), {"devices": summaries, "texts": {}}, "devices", format)


@app.command("show")
def show_profile(
    device: ProfileName,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Print a profile with the source of every number, the profiles it builds on, and its figures."""
    profile = profiles.load_profile(device)
    summaries = device_simulation.summarize_devices([profile])
    texts = {profile.name: profile.text, **profile.library}
    blocks: list[Block] = [Text(profile.text.rstrip())]
    for name, text in profile.library.items():
        blocks.append(Text(f"# ---- {name}, which the profile refers to ----\n{text.rstrip()}"))
    if source := summaries[0].price_source:
        blocks.append(Text(f"Price: {source}{'' if summaries[0].price_checked else ' (not checked)'}."))
    content = {"devices": summaries, "texts": texts}
    print_result([*blocks, *devices_document(summaries)], content, "devices", format)


app.command()(simulate)


@app.command("import")
def import_profile(
    geometry: Annotated[
        Path, typer.Argument(help="JSON file with zones, mechanics, cache and overheads of a drive")
    ],
    seek: Annotated[Path, typer.Argument(help="CSV file with the columns distance_cylinders,seek_ms")],
    output: OutputFile = None,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Make a profile from a measured drive's files; nothing is fitted to requests."""
    require_suffix(output, ".toml", "profile")
    drive = profile_from_drive_files(geometry, seek)
    if output is not None:
        write_output_file(output, drive.text.encode())
    elif format is OutputFormat.TEXT:
        print_text(drive.text, nl=False)
        return
    written = None if output is None else str(output)
    print_result(imported_profile_document(drive, written), drive, "drive", format)


app.command()(probe)
