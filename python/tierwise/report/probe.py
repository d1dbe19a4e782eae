"""A probed device as a document."""

from __future__ import annotations

from tierwise.model.statistics import median_interval
from tierwise.probe import ProbeReport, middle
from tierwise.probe.samples import CRYSTALDISKMARK
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, figure, table
from tierwise.results.measurements import FlushCheck, Latency


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
    found = table(["pattern"], figures)
    for title in dict.fromkeys(name.rsplit(" ", 1)[0] for name in CRYSTALDISKMARK):
        cells = [_rates(report, CRYSTALDISKMARK[f"{title} {way}"]) for way in ("read", "write")]
        found.add(title, *(cell for pair in cells for cell in pair))
    return found


def _others(report: ProbeReport, names: list[str]) -> Table:
    found = table(["pattern"], ["MB/s", "I/O per s"])
    for name in names:
        found.add(name, *_rates(report, name))
    return found


def _rates(report: ProbeReport, name: str) -> list[Cell]:
    results = report.patterns[name]
    rates = ([one.mb_per_s for one in results], [one.rate_per_s for one in results])
    return [estimate(median_interval(rate), _four_digits) for rate in rates]


def _four_digits(value: float) -> str:
    return numbers.grouped(value, 2 if value < 10 else 1 if value < 1000 else 0)


def _latencies(report: ProbeReport) -> Table:
    """Percentiles of the repeat with the median rate."""
    found = table(["latency, µs"], ["mean", "p50", "p95", "p99", "p99.9", "max"])
    for name, results in report.patterns.items():
        one = middle(results)
        for what, latency in (("read", one.read), ("write", one.write), ("flush", one.flush)):
            if latency is not None:
                found.add(name if what in name else f"{name} {what}", *_percentiles(latency))
    return found


def _percentiles(of: Latency) -> list[Cell]:
    return [figure(one_us, lambda us: numbers.grouped(us, 1 if us < 100 else 0)) for one_us in of.figures_us]


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
