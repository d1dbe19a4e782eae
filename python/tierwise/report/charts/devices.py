"""Load of the devices by role, write amplification, latency, and patterns of a device benchmark."""

from __future__ import annotations

from collections.abc import Callable

from tierwise.model.extras import alt
from tierwise.report import numbers
from tierwise.report.charts.builders import (
    Bar,
    LinePoint,
    bar_chart,
    dot,
    grouped_dot_chart,
    line_chart,
    one_after_the_other,
    stacked_chart,
)
from tierwise.report.charts.look import Figure, Look, figure, level_y, log_x, percent_x, zero_x
from tierwise.report.palette import ROLE_COLOURS
from tierwise.report.study.answer import Comparison
from tierwise.report.study.io_by_role import IoRow
from tierwise.report.study.summary import PERCENTILES

_MIB = 1 << 20


def busy_figure(comparison: Comparison) -> Figure | None:
    """Share of the elapsed time in which each role kept its device busy, in percent."""
    bars = [
        Bar(io.name, row.placement, numbers.percent(io.busy_share), 100 * io.busy_share)
        for row in comparison.rows
        for io in row.summary.busy_io
        if io.busy_share is not None and (io.reads or io.writes or io.flushes)
    ]

    def draw(look: Look) -> alt.LayerChart:
        x = percent_x("Device busy (% of elapsed time)")
        return bar_chart(bars, x, comparison.colours, look, "How busy each role kept its device")

    return figure("io", "Share of elapsed time in which the device was busy, by role", bars, draw)


def bytes_figure(comparison: Comparison) -> Figure | None:
    """MiB written and read, stacked by role."""
    return _volume(
        comparison,
        "bytes",
        "Bytes moved (MiB)",
        lambda io: {"written": io.write_bytes / _MIB, "read": io.read_bytes / _MIB},
        lambda mib: numbers.size(mib * _MIB),
    )


def requests_figure(comparison: Comparison) -> Figure | None:
    """Requests that reached the devices, stacked by role."""
    of = lambda io: {"written": io.writes, "read": io.reads}  # noqa: E731
    return _volume(comparison, "requests", "Requests", of, numbers.count)


def _volume(
    comparison: Comparison,
    name: str,
    title: str,
    of: Callable[[IoRow], dict[str, float]],
    text: Callable[[float], str],
) -> Figure | None:
    """``of`` gives the volume of a role in each direction."""
    slices = []
    for row in comparison.rows:
        for direction in ("written", "read"):
            parts = [
                (io.name, volume, text(volume)) for io in row.summary.io if (volume := of(io)[direction])
            ]
            slices += one_after_the_other(f"{row.placement}, {direction}", parts)

    def draw(look: Look) -> alt.LayerChart:
        return stacked_chart(slices, zero_x(title, look), ROLE_COLOURS, look, title)

    return figure(name, title, slices, draw)


def amplification_figure(comparison: Comparison) -> Figure | None:
    """Bytes at the devices over bytes written by the engine, and flash bytes over host bytes."""
    bars = [
        Bar(f"{row.placement}, {name}", "", f"{numbers.ratio(value)}×", value)
        for row in comparison.rows
        for name, value in row.summary.amplification.items()
    ]
    title = "Bytes written for each byte asked to be written"

    def draw(look: Look) -> alt.LayerChart:
        return bar_chart(bars, zero_x(title, look), {"": "place-1"}, look, title)

    return figure("amplification", title, bars, draw)


def latency_figure(comparison: Comparison) -> Figure | None:
    """Percentiles of the latency of all transactions, median and range of the runs."""
    points = [
        LinePoint(
            row.placement, row.placement, f"{name} {numbers.microseconds(spread.median)}",
            spread.median / 1e3, name, spread.least / 1e3, spread.most / 1e3,
        )
        for row in comparison.rows
        for name, spread in row.summary.latency.get("all", {}).items()
        if spread.least > 0
    ]  # fmt: skip

    def draw(look: Look) -> alt.LayerChart:
        y = level_y("Latency", "ms", [end for one in points for end in (one.low, one.high) if end])
        return line_chart(points, list(PERCENTILES), y, comparison.colours, look, "Latency of transactions")

    return figure("latency", "Latency of transactions", points, draw)


def patterns_figure(comparison: Comparison) -> Figure | None:
    """Throughput of every pattern of a device benchmark with its interval, on a log scale."""
    found = [(row, row.mb_per_s) for row in (comparison.benchmark.rows if comparison.benchmark else [])]
    dots = [dot(row.title, row.placement, rate, numbers.significant, " MB/s") for row, rate in found]

    def draw(look: Look) -> alt.LayerChart:
        ends = [end for _, rate in found for end in (rate.estimate, rate.low, rate.high) if end]
        title = "MB/s (log scale)"
        return grouped_dot_chart(dots, log_x(title, ends), comparison.colours, look, title)

    return figure("patterns", "Throughput of each pattern", dots, draw)
