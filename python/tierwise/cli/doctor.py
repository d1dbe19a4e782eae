"""``tierwise doctor``: checks the capabilities of this machine."""

from __future__ import annotations

from dataclasses import asdict

import typer

from tierwise.cli.output import Format, FormatOption, show
from tierwise.host.doctor import examine, missing_for_emulation
from tierwise.report.document import Block, Cell, Text, Tone, table


def doctor(format: FormatOption = Format.TEXT) -> None:
    """Check what this machine can do, and say how to fix what it cannot.

    Exit status 1 if devices cannot be emulated here.
    """
    checks = examine()
    found = table(["check", "state", "found", "fix"], [])
    for check in checks:
        state = Cell("ok", Tone.BETTER) if check.ok else Cell("missing", Tone.WORSE)
        found.add(check.name, state, check.detail, "" if check.ok else check.fix)
    blocks: list[Block] = [found]
    if missing := missing_for_emulation(checks):
        blocks.append(
            Text(f"Devices cannot be emulated here (missing: {', '.join(c.name for c in missing)}).")
        )
    show(blocks, {"checks": [asdict(check) for check in checks]}, "doctor", format)
    if missing:
        raise typer.Exit(1)
