"""``tierwise device simulate``: simulates a device in virtual time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.options import Duration, FixedSeed, duration_s
from tierwise.cli.output import Format, FormatOption, show
from tierwise.device_models import profiles
from tierwise.device_models.profiles import Profile
from tierwise.device_models.simulation import Job, Simulation
from tierwise.device_models.simulation import simulate as run_simulation
from tierwise.model.numbers import NONE, grouped
from tierwise.report.document import Block, Cell, Text, Tone, figure, table
from tierwise.results.measurements import Latency


def simulate(
    device: Annotated[str, typer.Argument(help="name of a profile, or path of its TOML file")],
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
    format: FormatOption = Format.TEXT,
) -> None:
    """Simulate a device with the requests of a file or of a preset, and say how long they take."""
    profile = profiles.load(device)
    job = Job(
        requests=requests,
        preset=preset,
        count=count,
        virtual_s=duration_s(duration, "--duration"),
        depth=depth,
        open=open_,
        precondition=precondition,
        seed=seed,
        times=times,
    )
    simulation = run_simulation(profile, job)
    show(_document(profile, simulation), simulation.model_dump(mode="json"), "simulation", format)


def _document(device: Profile, simulation: Simulation) -> list[Block]:
    """Number and service times by kind of request, then the overall figures."""
    tenths = partial(grouped, decimals=1)
    ops = table([""], ["count", "mean ms", "p50", "p95", "p99", "p99.9", "max", "per s", "MB/s"])
    for name, op in simulation.ops.items():
        ops.add(name, *_times(op), figure(op.per_second, grouped), figure(op.mb_per_s, tenths))
    if len(simulation.ops) > 1:
        ops.add("all", *_times(simulation), NONE, figure(simulation.mb_per_s, tenths))
    totals = table(["figure", "value"], [])
    for label, value in _figures(simulation):
        totals.add(label, value)
    return [Text(f"{device.name}: {device.summary}", Tone.HEADLINE), ops, totals]


def _times(of: Latency) -> list[Cell]:
    milliseconds = partial(grouped, decimals=3)
    return [figure(of.count, grouped), *(figure(one_us / 1e3, milliseconds) for one_us in of.figures_us)]


def _figures(simulation: Simulation) -> list[tuple[str, str]]:
    amplification = simulation.write_amplification
    figures = [
        ("virtual time", f"{simulation.virtual_s:,.3f} s, {simulation.busy_share:.1%} of it busy"),
        ("reads and writes", f"{simulation.iops:,.0f} per s"),
        ("write amplification", NONE if amplification is None else f"{amplification:.3f}"),
        ("erases", f"{simulation.erases:,}"),
        ("simulated", f"{simulation.requests_per_cpu_s:,.0f} requests per CPU-second"),
    ]
    if simulation.compared is not None:
        compared = simulation.compared
        means = f"mean {compared.model_mean_us / 1e3:,.3f} ms for {compared.measured_mean_us / 1e3:,.3f} ms"
        error = f"demerit {compared.demerit:.2%}, request by request {compared.each:.1%}"
        figures.append(("against measured times", f"{means}, {error}"))
    return figures
