"""``tierwise devices`` and ``tierwise device``: the profiles."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tierwise import profiles
from tierwise.cli.device_import import import_

_GB = 1e9

app = typer.Typer(no_args_is_help=True, help="Look at one device profile.")
app.command("import")(import_)


def devices() -> None:
    """List the device profiles that ship with tierwise."""
    table = Table("profile", "kind", "capacity", "summary", box=None)
    for name in profiles.names():
        profile = profiles.load(name)
        table.add_row(profile.name, profile.kind, f"{profile.capacity_bytes / _GB:,.0f} GB", profile.summary)
    Console().print(table)


@app.command()
def show(profile: Annotated[str, typer.Argument(help="name of a profile, or path of its TOML file")]) -> None:
    """Print a profile whole, with the source of every number."""
    typer.echo(profiles.load(profile).text)
