"""``tierwise doctor``: what this machine can do."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tierwise.host.doctor import examine, missing_for_emulation


def doctor(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Say what this machine can do, and how to mend what it cannot."""
    checks = examine()
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
        return
    table = Table("check", "state", "found", "fix", box=None)
    for check in checks:
        state = "[green]ok[/]" if check.ok else "[red]missing[/]"
        table.add_row(check.name, state, check.detail, "" if check.ok else check.fix)
    Console().print(table)
    if missing := missing_for_emulation(checks):
        typer.echo(f"Devices cannot be emulated here (missing: {', '.join(c.name for c in missing)}).")
