"""Devices as documents: profiles with the figures of their models, a probed device, an emulated device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tierwise.device_models.device_simulation import DeviceSummary
from tierwise.device_models.profiles import ProfileOfMeasuredDrive
from tierwise.model import numbers
from tierwise.model.numbers import grouped_digits, percent_text
from tierwise.model.statistics import median_interval
from tierwise.model.units import GB
from tierwise.probe import ProbeReport, median_rate_repeat
from tierwise.probe.probe_samples import CRYSTALDISKMARK
from tierwise.report.document import Block, Cell, Table, Text, Tone, empty_table, estimate_cell, figure_cell
from tierwise.results import AttainableRate
from tierwise.results.measurements import FlushCheck, Latency

_FIGURES = {
    "GB": "",
    "MB/s": "read\nwrite",
    "4 KiB/s": "read QD1\nQD32",
    "4 KiB/s ": "write QD1\nQD32",
    "8 KiB": "and flush\nms",
    "$": "GB-month",
}


def devices_document(summaries: Sequence[DeviceSummary]) -> list[Block]:
    """A row for each device, then an explanation of its rates."""
    devices_table = empty_table([], [f"{name}\n{unit}" for name, unit in _FIGURES.items()], names=["device"])
    for summary in summaries:
        devices_table.add(*_cells(summary))
    notes = ["Rates after long use: SSDs overwritten at random, volumes out of credit."]
    if any(_unchecked_price(summary) or summary.sources.from_memory for summary in summaries):
        notes.append(
            "Not checked: written down from memory; nobody compared it with the source that it names."
        )
    if any(summary.figures.cached_writes for summary in summaries):
        notes.append("* into a cache that still had room; more writes are slower.")
    return [devices_table, *(Text(note, Tone.QUIET) for note in notes)]


def imported_profile_document(drive: ProfileOfMeasuredDrive, written: str | None) -> list[Block]:
    """The profile made from a measured drive; ``written`` is its file, if any."""
    imported_table = empty_table(["summary"], ["GB"], names=["kind"])
    imported_table.add(drive.kind, drive.summary, figure_cell(drive.capacity_bytes / GB, grouped_digits))
    return [imported_table, *([Text(f"wrote {written}")] if written else [])]


def _cells(summary: DeviceSummary) -> list[Cell]:
    figures = summary.figures
    mark = "*" if figures.cached_writes else ""
    unsure = {"estimated": 1 - summary.sources.sourced_share, "not checked": summary.sources.unchecked_share}
    shares = [f"{percent_text(share)} {what}" for what, share in unsure.items() if share > 0]
    return [
        Cell(summary.name, below=tuple(Text(share, Tone.QUIET) for share in shares)),
        figure_cell(summary.capacity_bytes / GB, grouped_digits),
        _pair(figures.sequential_read_mb_per_s, figures.sequential_write_mb_per_s, mark),
        _pair(figures.random_read_iops, figures.random_read_qd32_iops),
        _pair(figures.random_write_iops, figures.random_write_qd32_iops, mark),
        figure_cell(figures.write_flush_us / 1e3, lambda ms: grouped_digits(ms, 3)),
        _price(summary),
    ]


def _price(summary: DeviceSummary) -> Cell:
    cost = figure_cell(summary.cost_per_gb_month, lambda cost: f"{cost:.3g}")
    below = (Text("not checked", Tone.QUIET),) if _unchecked_price(summary) else ()
    return replace(cost, below=below)


def _unchecked_price(summary: DeviceSummary) -> bool:
    return summary.cost_per_gb_month is not None and not summary.price_checked


def _pair(above: float, below: float, mark: str = "") -> Cell:
    return Cell(grouped_digits(above), below=(Text(grouped_digits(below) + mark),), value=above)


def probe_document(report: ProbeReport) -> list[Block]:
    """CrystalDiskMark's lines, further patterns, latencies, and whether a flush is credible."""
    where = f"{report.device}: {report.size_bytes >> 20:,} MiB, {report.engine}"
    others = [name for name in report.patterns if name not in CRYSTALDISKMARK.values()]
    return [
        Text(f"{where}, {report.host}, Linux {report.kernel}"),
        _lines(report),
        *([_others(report, others)] if others else []),
        _latencies(report),
        *_flush(report.flush),
        *(Text(f"warning: {warning}", Tone.WARNING) for warning in report.warnings),
    ]


def _lines(report: ProbeReport) -> Table:
    """CrystalDiskMark's four lines."""
    figures = [f"{way}\n{unit}" for way in ("read", "write") for unit in ("MB/s", "I/O per s")]
    lines_table = empty_table(["pattern"], figures)
    for title in dict.fromkeys(name.rsplit(" ", 1)[0] for name in CRYSTALDISKMARK):
        cells = [_rates(report, CRYSTALDISKMARK[f"{title} {way}"]) for way in ("read", "write")]
        lines_table.add(title, *(cell for pair in cells for cell in pair))
    return lines_table


def _others(report: ProbeReport, names: list[str]) -> Table:
    others_table = empty_table(["pattern"], ["MB/s", "I/O per s"])
    for name in names:
        others_table.add(name, *_rates(report, name))
    return others_table


def _rates(report: ProbeReport, name: str) -> list[Cell]:
    results = report.patterns[name]
    rates = ([result.mb_per_s for result in results], [result.rate_per_s for result in results])
    return [estimate_cell(median_interval(rate), _four_digits) for rate in rates]


def _four_digits(value: float) -> str:
    return numbers.grouped_digits(value, 2 if value < 10 else 1 if value < 1000 else 0)


def _latencies(report: ProbeReport) -> Table:
    """Percentiles of the repeat with the median rate."""
    latencies_table = empty_table(["latency, µs"], ["mean", "p50", "p95", "p99", "p99.9", "max"])
    for name, results in report.patterns.items():
        middle_result = median_rate_repeat(results)
        for what, latency in (
            ("read", middle_result.read),
            ("write", middle_result.write),
            ("flush", middle_result.flush),
        ):
            if latency is not None:
                latencies_table.add(name if what in name else f"{name} {what}", *_percentiles(latency))
    return latencies_table


def _percentiles(of: Latency) -> list[Cell]:
    return [
        figure_cell(one_us, lambda us: numbers.grouped_digits(us, 1 if us < 100 else 0))
        for one_us in of.figures_us
    ]


def _flush(flush: FlushCheck) -> list[Text]:
    times = flush.times
    return [
        Text(f"flush: {flush.verdict}", Tone.HEADLINE),
        *(Text(f"  {reason}") for reason in flush.reasons),
        Text(
            f"  medians in µs: write 4 KiB {times.write_4k_us:,.0f}, with flush "
            f"{times.write_flush_4k_us:,.0f}; 8 KiB {times.write_8k_us:,.0f}, with flush "
            f"{times.write_flush_8k_us:,.0f}; flush alone {times.flush_us:,.0f}"
        ),
    ]


_DECIDES = "Where a run needs more than that, the emulation decides its result, not the device."


def attainable_rate_blocks(rates: Sequence[AttainableRate]) -> list[Block]:
    """Rates here beside the model's, and what follows; empty for a device that none were measured of."""
    if not rates:
        return []
    attainable_table = empty_table([], ["depth", "here /s", "model /s"], names=["4 KiB"])
    for rate in rates:
        cells = (rate.depth, rate.here_per_s, rate.model_per_s)
        attainable_table.add(f"random {rate.op}", *(figure_cell(cell, numbers.count_text) for cell in cells))
    return [attainable_table, *([] if all(rate.is_attained for rate in rates) else [Text(_DECIDES)])]


def slower_depths(profile: str, rates: Sequence[AttainableRate]) -> str | None:
    """The depths at which this machine is slower than the model by more than 10 %, if there are any."""
    slower = [_slower(op, rates) for op in ("read", "write")]
    if not any(slower):
        return None
    figures = "; ".join(filter(None, slower))
    return f"This machine emulates {profile} more slowly than its model: {figures}. {_DECIDES}"


def _slower(op: str, rates: Sequence[AttainableRate]) -> str:
    slower = [rate for rate in rates if rate.op == op and not rate.is_attained]
    if len(slower) > _MOST_DEPTHS:
        slower = [slower[0], slower[len(slower) // 2], slower[-1]]
    each = [
        f"{numbers.count_text(rate.here_per_s)} of {numbers.count_text(rate.model_per_s)} at depth "
        f"{rate.depth}"
        for rate in slower
    ]
    return f"random {op}s a second {', '.join(each)}" if each else ""


_MOST_DEPTHS = 3
