"""``tierwise doctor``, which checks the capabilities of this machine, and ``tierwise clean``."""

from __future__ import annotations

import typer

from tierwise.cli.options import DryRun
from tierwise.cli.output import FormatOption, OutputFormat, print_result
from tierwise.host.clean import Cleanup, clean, pending_cleanup
from tierwise.host.doctor import check_machine, failed_emulation_checks
from tierwise.report.document import Block, Cell, Text, Tone, empty_table


def doctor(format: FormatOption = OutputFormat.TEXT) -> None:
    """Check what this machine can do, and say how to fix what it cannot.

    Exit status 1 if devices cannot be emulated here.
    """
    checks = check_machine()
    doctor_table = empty_table(["check", "state", "detail", "fix"], [])
    for check in checks:
        state = Cell("ok", Tone.BETTER) if check.ok else Cell("missing", Tone.WORSE)
        doctor_table.add(check.name, state, check.detail, "" if check.ok else check.fix)
    blocks: list[Block] = [doctor_table]
    if missing := failed_emulation_checks(checks):
        blocks.append(
            Text(f"Devices cannot be emulated here (missing: {', '.join(c.name for c in missing)}).")
        )
    print_result(blocks, {"checks": checks}, "doctor", format)
    if missing:
        raise typer.Exit(1)


def clean_leftovers(dry_run: DryRun = False, format: FormatOption = OutputFormat.TEXT) -> None:
    """Remove what a killed tierwise left behind: processes, disks, mounts, directories."""
    cleanup = Cleanup(dry_run=dry_run, entries=pending_cleanup() if dry_run else clean())
    verb = "would clean up" if dry_run else "cleaned up"
    lines: list[Block] = [Text(f"{verb}: {entry}") for entry in cleanup.entries]
    print_result(lines or [Text("nothing to clean up")], cleanup, "cleanup", format)
