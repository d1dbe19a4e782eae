"""What a day of recordings may cost and how large it may become; how far apart its recordings must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, floor, inf, log
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tierwise.model.statistics import mean_half_width


@dataclass(frozen=True)
class Taken:
    """A finished recording of a day.

    Attributes:
        name: of its folder.
        size_bytes: of its files.
        recorded_s: length of its bursts.
        described: the recording in a line.
        rate_ratio: rate of work in bursts over that beside them; ``None`` if not measured.
        cpu_ratio: processor time of the server for a switch in bursts over that beside them; ``None`` if not
            measured.
        cpu_s: processor time of the recorder, with attaching and decoding.
    """

    name: str
    size_bytes: int
    recorded_s: float
    described: str
    rate_ratio: float | None
    cpu_ratio: float | None
    cpu_s: float

    @classmethod
    def of(cls, folder: Path, told: dict[str, Any], cpu_s: float) -> Taken:
        """The recording in a folder, by its description."""
        cost, losses = told["cost"], told["losses"]
        recorded_s = sum(burst["end_ns"] - burst["start_ns"] for burst in told["bursts"]) / 1e9
        size_bytes = sum(file.stat().st_size for file in folder.iterdir())
        return cls(
            name=folder.name,
            size_bytes=size_bytes,
            recorded_s=recorded_s,
            described=f"{folder.name}: {told['duration_s']:.1f} s, {len(told['bursts'])} bursts, "
            f"{losses['recorded_events']:,} events, {losses['lost_events']:,} lost, "
            f"{size_bytes / 1e6:.2f} MB",
            rate_ratio=cost["rate_ratio"] if cost["rate_ratio_low"] > 0 else None,
            cpu_ratio=cost["cpu_ratio"] if cost["cpu_ratio_low"] > 0 else None,
            cpu_s=cpu_s,
        )


@dataclass(frozen=True)
class BurstCost:
    """Share of the rate that is lost within bursts.

    Attributes:
        share: the mean over recordings.
        low: of its 95 % interval; ``None`` with fewer than two measured recordings.
        high: as ``low``.
    """

    share: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, taken: Sequence[Taken]) -> BurstCost:
        """The geometric mean of the rate ratios; without one, by the server's processor time."""
        logs = [log(one.rate_ratio) for one in taken if one.rate_ratio]
        if not logs:
            dearer = [1 - 1 / one.cpu_ratio for one in taken if one.cpu_ratio]
            return cls(fmean(dearer) if dearer else 0.0)
        middle = fmean(logs)
        if len(logs) < 2:
            return cls(1 - exp(middle))
        half = mean_half_width(logs)
        return cls(1 - exp(middle), 1 - exp(middle + half), 1 - exp(middle - half))


class Period(NamedTuple):
    """The shortest period that keeps the limits, infinite if no further recording does; and the limit."""

    seconds: float
    because: str


@dataclass(frozen=True)
class Limits:
    """Limits of a day.

    Attributes:
        most_cost: share of the throughput.
        most_bytes: of all recordings.
    """

    most_cost: float = 0.01
    most_bytes: int = 500_000_000

    def exceeded_by(self, taken: Sequence[Taken]) -> bool:
        """Whether these recordings are too large."""
        return sum(one.size_bytes for one in taken) > self.most_bytes

    def period(self, taken: Sequence[Taken], elapsed_s: float, left_s: float) -> Period:
        """The shortest period for the rest of the day.

        A recording costs the share of the rate that bursts lose, times the length of its bursts.

        Args:
            taken: the recordings so far, at least one.
            elapsed_s: time since the day began.
            left_s: rest of the day.
        """
        share = max(BurstCost.of(taken).share, 0.0)
        costs_s = [share * one.recorded_s for one in taken]
        by_cost = _further(costs_s, self.most_cost * (elapsed_s + left_s))
        by_size = _further([one.size_bytes for one in taken], self.most_bytes)
        return max(
            Period(
                left_s / by_cost if by_cost else inf,
                f"bursts lose {share:.1%} of the rate, and the day may lose {self.most_cost:.0%}",
            ),
            Period(left_s / by_size if by_size else inf, f"the day may have {self.most_bytes / 1e6:,.0f} MB"),
        )


def _further(spent: Sequence[float], most: float) -> float:
    """Number of further recordings that the rest of a budget allows, each as the mean of those so far."""
    each = fmean(spent)
    return max(floor((most - sum(spent)) / each), 0) if each > 0 else inf
