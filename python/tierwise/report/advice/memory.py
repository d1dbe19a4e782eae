"""The rate over the memory: a curve with its interval as an SVG drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tierwise.advise import Advice
from tierwise.model import numbers
from tierwise.predict import Estimate

_WIDTH, _HEIGHT = 480, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 448, 24, 184
_LEAST_BETWEEN = 60
"""Least distance of two labels of sizes, in units of the drawing."""


@dataclass(frozen=True)
class Point:
    """The rate with one size of memory.

    Attributes:
        memory_bytes: of the machine.
        rate_per_s: of transactions, with its interval.
        holds_all: whether all tables and indexes fit.
    """

    memory_bytes: int
    rate_per_s: Estimate
    holds_all: bool = False


def points_of(advice: Advice) -> list[Point]:
    """As recorded, then each size; empty if the advice has none, or is of work that is done once."""
    recorded = advice.recorded.rate_per_s
    if not advice.memory or recorded is None or advice.recorded.once:
        return []
    moves = [
        Point(move.memory_bytes, move.prediction.rate_per_s, move.holds_all)
        for move in advice.memory
        if move.prediction.rate_per_s is not None
    ]
    return [Point(advice.run.memory_bytes, recorded), *moves]


def memory_curve(points: Sequence[Point], unit: str) -> Markup:
    """The drawing; the size from which on all tables fit is marked. Nothing for fewer than two points.

    Args:
        points: memory ascending.
        unit: what rates count.
    """
    if len(points) < 2:
        return Markup()
    least, most = (math.log(points[place].memory_bytes) for place in (0, -1))
    top = 1.05 * max(point.rate_per_s.high for point in points) or 1.0

    def x(point: Point) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (math.log(point.memory_bytes) - least) / ((most - least) or 1.0)

    def y(rate: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * rate / top

    def path(pairs: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{across:.1f},{down:.1f}" for across, down in pairs)

    band = [
        *((x(point), y(point.rate_per_s.high)) for point in points),
        *((x(point), y(point.rate_per_s.low)) for point in reversed(points)),
    ]
    drawn = [Markup('<polygon class="band" points="{}"/>').format(path(band))]
    for share in (0.0, 0.5, 1.0):
        rate = share * top / 1.05
        line = '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
        label = '<text class="end" x="{}" y="{:.1f}">{}</text>'
        drawn.append(Markup(line).format(_LEFT, _RIGHT, y(rate), y(rate)))
        drawn.append(Markup(label).format(_LEFT - 8, y(rate) + 4, numbers.significant(rate, 2)))
    drawn.append(
        Markup('<polyline points="{}"/>').format(
            path([(x(point), y(point.rate_per_s.value)) for point in points])
        )
    )
    right = -math.inf
    for point in points:
        drawn.append(
            Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"/>').format(x(point), y(point.rate_per_s.value))
        )
        if x(point) - right >= _LEAST_BETWEEN:
            right, words = x(point), numbers.size(point.memory_bytes)
            drawn.append(Markup('<text x="{:.1f}" y="{}">{}</text>').format(x(point), _BOTTOM + 20, words))
    if fits := next((point for point in points if point.holds_all), None):
        line = '<line class="fits" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>'
        drawn.append(Markup(line).format(x(fits), _TOP, _BOTTOM))
        side = "end" if x(fits) > (_LEFT + _RIGHT) / 2 else "start"
        shift = -6 if side == "end" else 6
        label = '<text class="{}" x="{:.1f}" y="{}">all fits</text>'
        drawn.append(Markup(label).format(side, x(fits) + shift, _TOP - 8))
    text = f"{unit} a second over the memory, from {numbers.size(points[0].memory_bytes)} to "
    text += numbers.size(points[-1].memory_bytes)
    frame = '<svg class="curve" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    return Markup(frame).format(_WIDTH, _HEIGHT, text, Markup("").join(drawn))
