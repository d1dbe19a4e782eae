"""``tierwise device simulate``: what a device would do, on virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tierwise import profiles
from tierwise.cli.output import seconds
from tierwise.profiles import Profile
from tierwise.results.measurements import Latency
from tierwise.simulation import Job, Simulation
from tierwise.simulation import simulate as run_simulation

_MISSING = "–"


def simulate(
    *,
    profile: Annotated[str, typer.Option(help="name of a profile, or path of its TOML file")],
    requests: Annotated[
        Path | None,
        typer.Option(help="CSV file with op (R, W, F or D), lbn, sectors, and maybe think_ms or arrival_us"),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="instead: randread-4k, randwrite-8k-qd32, log-append-8k, mixed70-4k, …")
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="requests of the preset", show_default="100000")
    ] = None,
    for_: Annotated[
        float | None, typer.Option("--for", parser=seconds, metavar="SECONDS", help="that the preset goes on")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, max=65_536, help="requests outstanding at a time")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="requests arrive at arrival_us")] = False,
    precondition: Annotated[
        str, typer.Option(help="what it went through: fresh, sequential, random or random:SHARE")
    ] = "fresh",
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="seed of the random number generator")] = 0,
    times: Annotated[Path | None, typer.Option(help="CSV file to write the time of each request to")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Simulate a device with the requests of a file or of a preset, and say how long they take."""
    device = profiles.load(profile)
    job = Job(
        requests=requests,
        preset=preset,
        count=count,
        virtual_s=for_,
        depth=depth,
        open=open_,
        precondition=precondition,
        seed=seed,
        times=times,
    )
    found = run_simulation(device, job)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _print(device, found)


def _print(device: Profile, found: Simulation) -> None:
    console = Console()
    console.print(f"{device.name}: {device.summary}", highlight=False, soft_wrap=True)
    console.print(_latencies(found), highlight=False)
    for label, value in _figures(found):
        console.print(f"{label:<24} {value}", highlight=False)


def _latencies(found: Simulation) -> Table:
    """Number and service times by kind of request."""
    table = Table("", box=None)
    for heading in ("count", "mean ms", "p50", "p95", "p99", "p99.9", "max", "per s", "MB/s"):
        table.add_column(heading, justify="right")
    for name, op in found.ops.items():
        table.add_row(name, *_times(op), f"{op.per_second:,.0f}", f"{op.mb_per_s:,.1f}")
    if len(found.ops) > 1:
        table.add_row("all", *_times(found), _MISSING, f"{found.mb_per_s:,.1f}")
    return table


def _times(of: Latency) -> list[str]:
    times_us = (of.mean_us, of.p50_us, of.p95_us, of.p99_us, of.p999_us, of.max_us)
    return [f"{of.count:,}", *(f"{time_us / 1e3:,.3f}" for time_us in times_us)]


def _figures(found: Simulation) -> list[tuple[str, str]]:
    amplification = found.write_amplification
    figures = [
        ("virtual time", f"{found.virtual_s:,.3f} s, {found.busy_share:.1%} of it busy"),
        ("reads and writes", f"{found.iops:,.0f} per s"),
        ("write amplification", _MISSING if amplification is None else f"{amplification:.3f}"),
        ("erases", f"{found.erases:,}"),
        ("simulated", f"{found.requests_per_cpu_s:,.0f} requests per CPU-second"),
    ]
    if found.compared is not None:
        compared = found.compared
        means = f"mean {compared.model_mean_us / 1e3:,.3f} ms for {compared.measured_mean_us / 1e3:,.3f} ms"
        error = f"demerit {compared.demerit:.2%}, request by request {compared.each:.1%}"
        figures.append(("against measured times", f"{means}, {error}"))
    return figures
