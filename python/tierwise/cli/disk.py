"""``tierwise disk``: manual control of emulated disks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from tierwise.cli.options import DryRun, FixedSeed, duration_option_s
from tierwise.cli.output import FormatOption, OutputFormat, print_result, print_warning
from tierwise.cli.printing import print_text
from tierwise.device_models import profiles
from tierwise.host.disk.disk import (
    WHOLE,
    DiskFaults,
    DiskStats,
    EmulatedDisk,
    Partition,
    SilentDisk,
    all_disks,
)
from tierwise.host.disk.disk_config import Transport
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.units import MIB, parse_duration_s, parse_size_bytes
from tierwise.report.device_report import attainable_rate_blocks, slower_depths
from tierwise.report.document import Cell, Text, Tone, empty_table, figure_cell

app = typer.Typer(no_args_is_help=True, help="Emulated disks: real block devices at the pace of a model.")

Name = Annotated[str, typer.Argument(help="name of the disk")]


@app.command("up")
def mount_disk(
    name: Name,
    profile: Annotated[str, typer.Option(help="name of a profile, or path of its TOML file")],
    size: Annotated[str, typer.Option(help="size, for example 4G")],
    mount: Annotated[Path, typer.Option(help="mount point: an empty or new directory")],
    *,
    fs: Annotated[str, typer.Option(help="file system: ext4 or xfs")] = "ext4",
    seed: FixedSeed = 0,
    precondition: Annotated[
        str,
        typer.Option(help="state of the device: fresh, or after sequential or random writes to every sector"),
    ] = "fresh",
    lies: Annotated[bool, typer.Option("--lies", help="acknowledge flushes without doing them")] = False,
    fail_after: Annotated[str, typer.Option(help="die after '30s', '10min' or '1000 requests'")] = "",
    slow_factor: Annotated[float, typer.Option(help="factor by which it is slower at first")] = 1,
    slow_for: Annotated[str | None, typer.Option(metavar="TIME", help="time for which it is slower")] = None,
    unreadable: Annotated[str, typer.Option(help="sectors that cannot be read, FROM-TO")] = "",
    transport: Annotated[
        Transport | None,
        typer.Option(help="way of requests to the server (default: the fastest of this kernel)"),
    ] = None,
) -> None:
    """Make an emulated disk with a file system and mount it. It stays until `disk down`."""
    partition = Partition(WHOLE, parse_size_bytes(size, "--size"), fs)
    times = _fault_times(fail_after, "--fail-after") if fail_after else {}
    faults = DiskFaults(
        **{f"fail_{key}": value for key, value in times.items()},
        slow_factor=slow_factor,
        slow_for_s=duration_option_s(slow_for, "--slow-for") or 0.0,
        unreadable=[_sectors(unreadable, "--unreadable")] if unreadable else [],
    )
    disk = EmulatedDisk.up(
        name,
        profiles.load_profile(profile),
        [partition],
        mount,
        seed,
        owner="server",
        precondition=precondition,  # type: ignore[arg-type]
        lies_about_flush=lies,
        faults=faults,
        transport=transport,
    )
    stats = disk.stats()
    print_text(f"{name}: {stats.profile} on {stats.partitions[WHOLE].device} at {disk.mounts[WHOLE]}")
    for warning in stats.warnings:
        print_text(f"warning: {warning}; answers may be late")
    if slower := slower_depths(stats.profile, stats.attainable):
        print_text(f"warning: {slower}")


@app.command("down")
def unmount_disk(name: Name, dry_run: DryRun = False) -> None:
    """Unmount a disk and delete its content."""
    disk = EmulatedDisk.find(name)
    if dry_run:
        print_text(f"would remove the disk {name} with all files on it")
    else:
        disk.down()


@app.command("cut")
def cut_power(
    name: Name,
    keep_random: Annotated[
        bool, typer.Option("--keep-random", help="keep a random subset of the sectors that were not flushed")
    ] = False,
    seed: FixedSeed = 0,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Cut the power of a disk: unflushed writes are lost, requests fail. Then mount it again."""
    if seed and not keep_random:
        raise TierwiseError("--seed is of --keep-random", "add --keep-random, or leave --seed out")
    disk = EmulatedDisk.find(name)
    report = disk.cut(keep_random=keep_random, seed=seed, remount=False)
    lost = (
        f"{name}: {numbers.counted_noun(report.unflushed_writes, 'unflushed write')} on "
        f"{numbers.counted_noun(report.unflushed_sectors, 'sector')}: {report.kept_sectors} kept, "
        f"{report.lost_sectors} lost, {numbers.counted_noun(report.torn_writes, 'write')} torn; "
        f"{numbers.counted_noun(report.failed_requests, 'request')} failed"
    )
    try:
        print_result([Text(lost)], report, "power-cut", format)
    finally:  # also if nobody reads what is printed
        disk.remount()


@app.command("fail")
def fail_disk(
    name: Name, after: Annotated[str, typer.Option(help="'30s', '10min' or '1000 requests'")] = "0s"
) -> None:
    """Make a disk fail: every request gets an error until `disk down`."""
    times = _fault_times(after, "--after")
    EmulatedDisk.find(name).fail(**times)


@app.command("slow")
def slow_disk(
    name: Name,
    factor: Annotated[float, typer.Option(help="factor by which every request takes longer")],
    duration: Annotated[str, typer.Option(metavar="TIME", help="for example 30s")],
) -> None:
    """Make a disk slow, or stall it, for a time."""
    EmulatedDisk.find(name).slow(factor, duration_option_s(duration, "--duration") or 0.0)


@app.command("unreadable")
def make_sectors_unreadable(
    name: Name,
    sectors: Annotated[str, typer.Option(help="FROM-TO, in sectors of 512 bytes of the block device")],
) -> None:
    """Make reads of some sectors fail until they are written."""
    asked = _sectors(sectors, "--sectors")
    EmulatedDisk.find(name).make_unreadable(asked.start, asked.stop - 1)


def _fault_times(text: str, option: str) -> dict[str, Any]:
    """Arguments of ``EmulatedDisk.fail`` for ``30s`` or ``1000 requests``."""
    if count := re.fullmatch(r"0*(\d{1,19})\s*requests?", text.strip()):
        return {"after_requests": int(count[1])}
    if re.fullmatch(r"0+\s*s", text.strip()):  # at once
        return {"after_s": 0.0}
    with suppress(TierwiseError):
        if not text.strip().isdecimal():  # of which nothing tells whether it is a time
            return {"after_s": parse_duration_s(text, option)}
    raise TierwiseError(f"{option} {text!r} is no time and no count", "use '30s', '10min' or '1000 requests'")


def _sectors(text: str, option: str) -> range:
    match = re.fullmatch(r"(\d+)-(\d+)", text.strip())
    if match is None or int(match[1]) > int(match[2]):
        raise TierwiseError(f"{option} {text!r} is no range of sectors", "use FROM-TO, such as 2048-2055")
    return range(int(match[1]), int(match[2]) + 1)


ListedDisk = DiskStats | SilentDisk


@app.command("list")
def list_disks(format: FormatOption = OutputFormat.TEXT) -> None:
    """List the disks that are up, with what each partition did and its deadline overrun."""
    disks, silent = all_disks()
    listing = empty_table(
        ["mount"],
        ["reads\nMiB", "writes\nMiB", "flushes", "depth", "overrun µs\np50/p99/max"],
        names=["disk", "device"],
    )
    for disk in disks:
        for row in _rows(disk):
            listing.add(*row)
    print_result([listing], {"disks": [*disks, *silent]}, "disks", format)
    for gone in silent:
        where = ", ".join(map(str, gone.mounts)) or "nowhere"
        print_warning(
            f"{gone.name} gives no counters, mounted at {where}: tierwise disk stats {gone.name} says why"
        )


def _rows(of: DiskStats) -> Iterator[list[Cell | str]]:
    late = numbers.NONE
    if overrun := of.deadline_overrun:
        late = f"{overrun.p50_us:.1f}/{overrun.p99_us:.1f}/{overrun.max_us:.0f}"
    for part in of.partitions.values():
        yield [
            Cell(of.name, below=(Text(of.profile, Tone.QUIET), Text(part.name, Tone.QUIET))),
            part.device,
            part.mount,
            _requests(part.reads, part.read_bytes),
            _requests(part.writes, part.write_bytes),
            figure_cell(part.flushes, numbers.count_text),
            figure_cell(part.queue_depth_mean, lambda depth: f"{depth:.2f}"),
            late,
        ]


def _requests(count: int, size_bytes: int) -> Cell:
    return Cell(numbers.count_text(count), below=(Text(f"{size_bytes / MIB:,.1f}"),), value=count)


@app.command("stats")
def print_disk_counters(name: Name, format: FormatOption = OutputFormat.TEXT) -> None:
    """Print the counters of a disk."""
    counted = EmulatedDisk.find(name).stats()
    stats_table = empty_table(["counter", "value"], [])
    for path, value in _flat("", counted.model_dump(exclude={"attainable"})):
        stats_table.add(path, value)
    print_result([stats_table, *attainable_rate_blocks(counted.attainable)], counted, "disk", format)


def _flat(path: str, value: object) -> list[tuple[str, str]]:
    """Nested counters as dotted names."""
    if isinstance(value, dict):
        return [leaf for key, part in value.items() for leaf in _flat(f"{path}.{key}".lstrip("."), part)]
    return [(path, f"{value:,.3f}" if isinstance(value, float) else str(value))]
