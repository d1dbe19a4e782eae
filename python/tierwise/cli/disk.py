"""``tierwise disk`` and ``tierwise clean``: emulated disks by hand, and undoing what is left of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tierwise import profiles
from tierwise.cli.output import warn, wide_console
from tierwise.errors import TierwiseError
from tierwise.host import clean as host_clean
from tierwise.host.disk import WHOLE, EmulatedDisk, Faults, Partition, all_disks
from tierwise.host.disk_stats import DiskStats
from tierwise.units import parse_size_bytes

_MIB = 1 << 20
_TABLE_COLUMNS = 160

app = typer.Typer(no_args_is_help=True, help="Emulated disks: real block devices at the pace of a model.")

Name = Annotated[str, typer.Argument(help="name of the disk")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command()
def up(
    name: Name,
    profile: Annotated[str, typer.Option(help="name of a profile, or path of its TOML file")],
    size: Annotated[str, typer.Option(help="for example 4G")],
    mount: Annotated[Path, typer.Option(help="directory to mount it at: empty, or one to be made")],
    *,
    fs: Annotated[str, typer.Option(help="ext4 or xfs")] = "ext4",
    seed: Annotated[int, typer.Option(min=0, help="of everything random in the model")] = 0,
    precondition: Annotated[
        str, typer.Option(help="what it went through: fresh, sequential or random writes to every sector")
    ] = "fresh",
    lies: Annotated[bool, typer.Option("--lies", help="acknowledge flushes without doing them")] = False,
    fail_after: Annotated[str, typer.Option(help="die after '30s' or '1000 requests'")] = "",
    slow_factor: Annotated[float, typer.Option(help="be this much slower at first")] = 1,
    slow_for: Annotated[float, typer.Option(help="seconds of being slower")] = 0,
    unreadable: Annotated[str, typer.Option(help="sectors that cannot be read, FROM-TO")] = "",
) -> None:
    """Make an emulated disk with a file system on it and mount it; it stays until it is taken down."""
    partition = Partition(WHOLE, parse_size_bytes(size, "--size"), fs)
    times = _fault_times(fail_after, "--fail-after") if fail_after else {}
    faults = Faults(
        **{f"fail_{key}": value for key, value in times.items()},
        slow_factor=slow_factor,
        slow_for_s=slow_for,
        unreadable=[_sectors(unreadable, "--unreadable")] if unreadable else [],
    )
    disk = EmulatedDisk.up(
        name,
        profiles.load(profile),
        [partition],
        mount,
        seed,
        owner="server",
        precondition=precondition,  # type: ignore[arg-type]
        lies_about_flush=lies,
        faults=faults,
    )
    stats = disk.stats()
    typer.echo(f"{name}: {stats.profile} on {stats.partitions[WHOLE].loop} at {disk.mounts[WHOLE]}")
    for warning in stats.warnings:
        typer.echo(f"warning: {warning}; answers may be late")


@app.command()
def down(name: Name) -> None:
    """Unmount a disk and forget what is on it."""
    EmulatedDisk.find(name).down()


@app.command()
def cut(
    name: Name,
    keep_random: Annotated[
        bool, typer.Option("--keep-random", help="keep a random subset of the sectors that were not flushed")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="decides the subset")] = 0,
    as_json: AsJson = False,
) -> None:
    """Cut the power: what was not flushed is lost, users get errors; then mount the disk again."""
    disk = EmulatedDisk.find(name)
    report = disk.cut(keep_random=keep_random, seed=seed, remount=False)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        typer.echo(
            f"{name}: {report.unflushed_writes} unflushed writes on {report.unflushed_sectors} sectors: "
            f"{report.kept_sectors} kept, {report.lost_sectors} lost, {report.torn_writes} writes torn; "
            f"{report.failed_requests} requests failed"
        )
    disk.remount()


@app.command()
def fail(
    name: Name,
    after: Annotated[str, typer.Option(help="'30s' or '1000 requests'")] = "0s",
) -> None:
    """Let the device die: every request gets an error, until the disk is taken down."""
    times = _fault_times(after, "--after")
    EmulatedDisk.find(name).fail(**times)


@app.command()
def slow(
    name: Name,
    factor: Annotated[float, typer.Option(help="how many times as long everything takes")],
    for_s: Annotated[float, typer.Option("--for", help="seconds")],
) -> None:
    """Let the device be slow, or stall, for a while."""
    EmulatedDisk.find(name).slow(factor, for_s)


@app.command()
def unreadable(
    name: Name,
    sectors: Annotated[str, typer.Option(help="FROM-TO, in sectors of 512 bytes of the block device")],
) -> None:
    """Let reads of some sectors fail until they are written."""
    asked = _sectors(sectors, "--sectors")
    EmulatedDisk.find(name).make_unreadable(asked.start, asked.stop - 1)


def _fault_times(text: str, option: str) -> dict[str, Any]:
    """Arguments of ``EmulatedDisk.fail`` for ``30s`` or ``1000 requests``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*s|(\d+)\s*requests?", text.strip())
    if found is None:
        raise TierwiseError(f"{option} {text!r} is no time and no count", "use '30s' or '1000 requests'")
    seconds, requests = found.groups()
    return {"after_s": float(seconds)} if seconds else {"after_requests": int(requests)}


def _sectors(text: str, option: str) -> range:
    found = re.fullmatch(r"(\d+)-(\d+)", text.strip())
    if found is None or int(found[1]) > int(found[2]):
        raise TierwiseError(f"{option} {text!r} is no range of sectors", "use FROM-TO, such as 2048-2055")
    return range(int(found[1]), int(found[2]) + 1)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the disks that are up, with what each partition did and how late its answers were."""
    disks, dead = all_disks()
    if as_json:
        gone = [{"name": name, "dead": True, "mounts": list(map(str, dead[name]))} for name in dead]
        typer.echo(json.dumps([*(stats.model_dump() for stats in disks), *gone], indent=2))
        return
    table = Table("disk", "profile", "partition", "loop", "mount", "reads", "writes", "flushes", box=None)
    for heading in ("read MiB", "written MiB", "depth", "late µs p50/p99/max"):
        table.add_column(heading, justify="right")
    for stats in disks:
        for row in _rows(stats):
            table.add_row(*row)
    console = wide_console(_TABLE_COLUMNS)
    console.print(table)
    for name, mounts in dead.items():
        where = ", ".join(map(str, mounts)) or "nowhere"
        warn(f"{name} is dead, mounted at {where}: end what uses it, then tierwise disk down {name}")


def _rows(stats: DiskStats) -> list[list[str]]:
    late = f"{stats.lateness_p50_us:.1f}/{stats.lateness_p99_us:.1f}/{stats.lateness_max_us:.0f}"
    return [
        [
            *(stats.name, stats.profile, part.name, part.loop, part.mount),
            *(f"{count:,}" for count in (part.reads, part.writes, part.flushes)),
            *(f"{size / _MIB:,.1f}" for size in (part.read_bytes, part.write_bytes)),
            *(f"{part.queue_depth_mean:.2f}", late),
        ]
        for part in stats.partitions.values()
    ]


@app.command()
def stats(name: Name, as_json: AsJson = False) -> None:
    """Print everything that a disk counted since it came up."""
    counted = EmulatedDisk.find(name).stats()
    if as_json:
        typer.echo(counted.model_dump_json(indent=2))
        return
    table = Table("counter", "value", box=None)
    for path, value in _flat("", counted.model_dump()):
        table.add_row(path, value)
    Console().print(table)


def _flat(path: str, value: object) -> list[tuple[str, str]]:
    """Nested counters as dotted names."""
    if isinstance(value, dict):
        return [leaf for key, part in value.items() for leaf in _flat(f"{path}.{key}".lstrip("."), part)]
    return [(path, f"{value:,.3f}" if isinstance(value, float) else str(value))]


def clean() -> None:
    """Undo what tierwise left behind when it was killed: processes, disks, mounts, directories."""
    for line in host_clean.clean():
        typer.echo(f"cleaned up: {line}")
