"""``tierwise devices`` and ``tierwise device show``: the profiles, and what their models do."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from tierwise import device_summary, profiles
from tierwise.cli import device_import, device_simulate
from tierwise.cli.output import wide_console
from tierwise.device_summary import DeviceSummary

_GB = 1e9
_TABLE_COLUMNS = 180
_COLUMNS = {
    "capacity": "GB",
    "sequential": "MB/s read / write",
    "random read": "4 KiB I/O per s, 1 / 32 deep",
    "random write": "4 KiB I/O per s, 1 / 32 deep",
    "append + flush": "8 KiB, ms",
    "price": "$ per GB-month",
    "sourced": "not estimated",
}

app = typer.Typer(no_args_is_help=True, help="Look at device profiles, and simulate them.")
app.command()(device_simulate.simulate)
app.command("import")(device_import.import_)


def devices(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """List the device profiles that ship with tierwise, with figures found by simulating each."""
    summaries = device_summary.summarize([profiles.load(name) for name in profiles.names()])
    if as_json:
        typer.echo(json.dumps([summary.model_dump() for summary in summaries], indent=2))
        return
    _print(summaries)


@app.command()
def show(profile: Annotated[str, typer.Argument(help="name of a profile, or path of its TOML file")]) -> None:
    """Print a profile whole, with the source of every number, the profiles it builds on, and its figures."""
    found = profiles.load(profile)
    typer.echo(found.text)
    for name, text in found.library.items():
        typer.echo(f"# ---- {name}, which the profile refers to ----\n{text}")
    _print(device_summary.summarize([found]))


def _print(summaries: list[DeviceSummary]) -> None:
    console = wide_console(_TABLE_COLUMNS)
    table = Table(box=None)
    table.add_column("profile", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for heading, unit in _COLUMNS.items():
        table.add_column(f"{heading}\n[dim]{unit}[/dim]", justify="right")
    for summary in summaries:
        table.add_row(*_cells(summary))
    console.print(table, highlight=False)
    console.print("after long use: SSDs overwritten at random, volumes out of credit", highlight=False)
    if any(summary.figures.cached_writes for summary in summaries):
        console.print("* into a cache that still had room; more writes are slower", highlight=False)


def _cells(summary: DeviceSummary) -> list[str]:
    figures = summary.figures
    price = summary.usd_per_gb_month
    mark = "*" if figures.cached_writes else ""
    return [
        summary.name,
        summary.kind,
        f"{summary.capacity_bytes / _GB:,.0f}",
        f"{figures.sequential_read_mb_per_s:,.0f} / {figures.sequential_write_mb_per_s:,.0f}{mark}",
        f"{figures.random_read_iops:,.0f} / {figures.random_read_qd32_iops:,.0f}",
        f"{figures.random_write_iops:,.0f} / {figures.random_write_qd32_iops:,.0f}{mark}",
        f"{figures.write_flush_us / 1e3:,.3f}",
        "" if price is None else f"{price:.3g}",
        f"{summary.sources.sourced_share:.0%}",
    ]
