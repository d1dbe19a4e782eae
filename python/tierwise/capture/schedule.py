"""When to record: the bursts of a recording, the recordings of a day, and what a day may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, floor, inf, log
from statistics import fmean
from typing import Any

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.numbers import percent_text
from tierwise.model.statistics import mean_half_width


@dataclass(frozen=True)
class BurstSchedule:
    """Bursts of ``burst_s`` seconds that cover ``duty`` of the time, for ``seconds`` or until stopped.

    With a duty of 1, bursts are as long as memory allows, one after the other. Where the recording would
    exceed ``limit_bytes``, events are taken in a smaller share of the time; one of unknown length ends early.
    """

    seconds: float | None
    duty: float
    burst_s: float = 0.5
    limit_bytes: int = 1_000_000_000

    def __post_init__(self) -> None:
        """Refuse an invalid schedule."""
        _core.require_schedule(self.seconds, self.duty, self.burst_s, self.limit_bytes)


def parse_burst_duty(text: str) -> float:
    """A duty from text such as ``1/10``, ``0.1`` or ``10%``."""
    try:
        percent = text.endswith("%")
        duty = float(Fraction(text.removesuffix("%"))) / (100 if percent else 1)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise TierwiseError(
            f"--duty: {text!r} is no share of the time", "use a fraction such as 1/10"
        ) from None
    if not 0 < duty <= 1:
        raise TierwiseError(f"--duty: {text} is no share of the time", "use more than 0 and at most 1")
    return duty


@dataclass(frozen=True)
class FinishedRecording:
    """A finished recording of a day.

    Attributes:
        size_bytes: of its files.
        recorded_s: length of its bursts.
        rate_ratio: rate of work in bursts over that beside them; ``None`` if not measured.
        cpu_ratio: processor time of the server for a switch in bursts over that beside them; ``None`` if not
            measured.
        cpu_s: processor time of the recorder, with attaching and decoding.
    """

    size_bytes: int
    recorded_s: float
    rate_ratio: float | None
    cpu_ratio: float | None
    cpu_s: float

    @classmethod
    def of(cls, recorded: dict[str, Any], size_bytes: int, cpu_s: float) -> FinishedRecording:
        """A recording by its description."""
        cost = recorded["cost"]
        return cls(
            size_bytes=size_bytes,
            recorded_s=sum(burst["end_ns"] - burst["start_ns"] for burst in recorded["bursts"]) / 1e9,
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
    def of(cls, taken: Sequence[FinishedRecording]) -> BurstCost:
        """The geometric mean of the rate ratios; without one, by the server's processor time."""
        logs = [log(part.rate_ratio) for part in taken if part.rate_ratio]
        if not logs:
            dearer = [1 - 1 / part.cpu_ratio for part in taken if part.cpu_ratio]
            return cls(fmean(dearer) if dearer else 0.0)
        middle = fmean(logs)
        if len(logs) < 2:
            return cls(1 - exp(middle))
        half = mean_half_width(logs)
        return cls(1 - exp(middle), 1 - exp(middle + half), 1 - exp(middle - half))


@dataclass(frozen=True)
class DayPlan:
    """When to record during a day.

    Attributes:
        seconds: length of the day.
        every_s: length of a period, with one recording in each.
        each: schedule of one recording.
        most_cost: share of the throughput that the day may cost.
        most_bytes: of all recordings.
    """

    seconds: float
    every_s: float
    each: BurstSchedule
    most_cost: float = 0.01
    most_bytes: int = 500_000_000

    def __post_init__(self) -> None:
        """Refuse periods that hold no recording."""
        each_s = self.each.seconds or 0.0
        if not each_s < self.every_s <= self.seconds:
            raise TierwiseError(
                f"--every: {self.every_s:g} s does not lie between one recording ({each_s:g} s) and the "
                f"whole day ({self.seconds:g} s)",
                "write for example --duration 24h --every 10min --each 60s",
            )

    def is_exceeded_by(self, taken: Sequence[FinishedRecording]) -> bool:
        """Whether these recordings are too large."""
        return sum(part.size_bytes for part in taken) > self.most_bytes

    def shortest_period(self, taken: Sequence[FinishedRecording], elapsed_s: float) -> tuple[float, str]:
        """The shortest period that keeps the limits for the rest of the day.

        A recording costs the share of the rate that bursts lose, times the length of its bursts.

        Args:
            taken: the recordings so far, at least one.

        Returns:
            The period in seconds, infinite if no further recording keeps the limits; and the limit, in words.
        """
        left_s = max(self.seconds - elapsed_s, 0.0)
        share = max(BurstCost.of(taken).share, 0.0)
        by_cost = _further([share * part.recorded_s for part in taken], self.most_cost * (elapsed_s + left_s))
        by_size = _further([part.size_bytes for part in taken], self.most_bytes)
        return max(
            (
                left_s / by_cost if by_cost else inf,
                f"bursts lose {percent_text(share)} of the rate, and the day may lose "
                f"{percent_text(self.most_cost)}",
            ),
            (left_s / by_size if by_size else inf, f"the day may have {self.most_bytes / 1e6:,.0f} MB"),
        )


def _further(spent: Sequence[float], most: float) -> float:
    """Number of further recordings that the rest of a budget allows, each as the mean of those so far."""
    each = fmean(spent)
    return max(floor((most - sum(spent)) / each), 0) if each > 0 else inf
