"""``tierwise probe``: measure a real device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tierwise.cli.output import warn, wide_console
from tierwise.errors import TierwiseError
from tierwise.host import clean
from tierwise.probe import SWEEP, Options, ProbeReport, middle
from tierwise.probe import probe as run_probe
from tierwise.probing.samples import CRYSTALDISKMARK
from tierwise.results.measurements import FlushCheck, Latency
from tierwise.statistics import Interval, median_interval
from tierwise.units import parse_size_bytes

_TABLE_COLUMNS = 140


def probe(  # noqa: PLR0917  (options of a command)
    path: Annotated[Path, typer.Argument(help="directory on the device, or a block device with --destroy")],
    time: Annotated[float, typer.Option(help="seconds of measuring; filling the file comes on top")] = 60.0,
    size: Annotated[
        str | None, typer.Option(help="of the file, such as 4G; by default 1G if there is room")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="of every figure, interleaved")] = 5,
    pattern: Annotated[
        list[str] | None, typer.Option(help="one more pattern, such as mixed70-4k-qd16; may be repeated")
    ] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="also 4 KiB to 1 MiB at depths 1 to 64")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write a profile to this file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    destroy: Annotated[bool, typer.Option("--destroy", help="overwrite the block device PATH")] = False,
    no_fill: Annotated[bool, typer.Option("--no-fill", help="do not write the block device first")] = False,
    engine: Annotated[str | None, typer.Option(help="io_uring or threads; the best there is")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of places and order")] = 0,
) -> None:
    """Measure the device under PATH: CrystalDiskMark's lines, latencies, and whether a flush can be believed.

    A file is made in PATH and removed again; no other is touched.
    """
    clean.clean_before(warn)
    options = Options(
        seconds=time,
        size_bytes=None if size is None else parse_size_bytes(size, "--size"),
        repeats=repeats,
        extra=(*(pattern or ()), *(SWEEP if sweep else ())),
        destroy=destroy,
        fill=not no_fill,
        fit=out is not None or as_json,
        engine=engine,
        seed=seed,
    )
    console = wide_console(_TABLE_COLUMNS)
    with console.status("looking", spinner="line") as status:
        report = run_probe(path, options, status.update)
    if out is not None and report.profile is not None:
        _write(out, report.profile)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
        return
    _print(console, report)
    if out is not None:
        console.print(f"profile: {out}", highlight=False)


def _print(console: Console, report: ProbeReport) -> None:
    where = f"{report.device}: {report.size_bytes >> 20:,} MiB, {report.engine}"
    console.print(f"{where}, {report.host}, Linux {report.kernel}", highlight=False, soft_wrap=True)
    console.print(_lines(report))
    others = [name for name in report.patterns if name not in CRYSTALDISKMARK.values()]
    if others:
        console.print(_others(report, others))
    console.print(_latencies(report))
    _print_flush(console, report.flush)
    for warning in report.warnings:
        console.print(f"warning: {warning}", highlight=False, soft_wrap=True)


def _lines(report: ProbeReport) -> Table:
    """CrystalDiskMark's four lines."""
    table = Table("", box=None)
    for direction in ("read", "write"):
        for heading in (f"{direction} MB/s", f"{direction} I/O per s"):
            table.add_column(heading, justify="right")
    for title in dict.fromkeys(name.rsplit(" ", 1)[0] for name in CRYSTALDISKMARK):
        cells = []
        for direction in ("read", "write"):
            cells += _rates(report, CRYSTALDISKMARK[f"{title} {direction}"])
        table.add_row(title, *cells)
    return table


def _others(report: ProbeReport, names: list[str]) -> Table:
    table = Table("pattern", box=None)
    for heading in ("MB/s", "I/O per s"):
        table.add_column(heading, justify="right")
    for name in names:
        table.add_row(name, *_rates(report, name))
    return table


def _rates(report: ProbeReport, name: str) -> list[str]:
    results = report.patterns[name]
    rates = ([one.mb_per_s for one in results], [one.rate_per_s for one in results])
    return [_interval(median_interval(rate)) for rate in rates]


def _interval(interval: Interval) -> str:
    """A median with its 95 % interval, to about four digits."""
    numbers = [interval.estimate, interval.low, interval.high]
    digits = 2 if interval.estimate < 10 else 1 if interval.estimate < 1000 else 0
    middle_, low, high = ("" if number is None else f"{number:,.{digits}f}" for number in numbers)
    return f"{middle_} ({low}–{high})" if low else middle_


def _latencies(report: ProbeReport) -> Table:
    """Percentiles of the repeat of median rate."""
    table = Table("latency, µs", box=None)
    for heading in ("mean", "p50", "p95", "p99", "p99.9", "max"):
        table.add_column(heading, justify="right")
    for name, results in report.patterns.items():
        one = middle(results)
        for what, latency in (("read", one.read), ("write", one.write), ("flush", one.flush)):
            if latency is not None:
                table.add_row(name if what in name else f"{name} {what}", *_percentiles(latency))
    return table


def _percentiles(latency: Latency) -> list[str]:
    numbers = (
        latency.mean_us,
        latency.p50_us,
        latency.p95_us,
        latency.p99_us,
        latency.p999_us,
        latency.max_us,
    )
    return [f"{number:,.0f}" if number >= 100 else f"{number:.1f}" for number in numbers]


def _print_flush(console: Console, flush: FlushCheck) -> None:
    times = flush.times
    console.print(f"flush: {flush.verdict}", style="bold", highlight=False)
    for reason in flush.reasons:
        console.print(f"  {reason}", highlight=False, soft_wrap=True)
    console.print(
        f"  medians in µs: write 4 KiB {times.write_4k_us:,.0f}, with flush {times.write_flush_4k_us:,.0f}; "
        f"8 KiB {times.write_8k_us:,.0f}, with flush {times.write_flush_8k_us:,.0f}; "
        f"flush alone {times.flush_us:,.0f}",
        highlight=False,
        soft_wrap=True,
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "name a file that you may write") from error
