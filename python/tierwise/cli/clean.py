"""``tierwise clean``."""

from __future__ import annotations

from tierwise.cli.options import DryRun
from tierwise.cli.output import Format, FormatOption, show
from tierwise.host.clean import Cleanup, clean, pending
from tierwise.report.document import Block, Text


def clean_(dry_run: DryRun = False, format: FormatOption = Format.TEXT) -> None:
    """Remove what a killed tierwise left behind: processes, disks, mounts, directories."""
    found = Cleanup(dry_run=dry_run, entries=pending() if dry_run else clean())
    verb = "would clean up" if dry_run else "cleaned up"
    lines: list[Block] = [Text(f"{verb}: {entry}") for entry in found.entries]
    show(lines or [Text("nothing to clean up")], found.model_dump(mode="json"), "cleanup", format)
