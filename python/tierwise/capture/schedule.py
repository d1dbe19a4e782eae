"""The schedule of a recording: bursts spread over the run, with unrecorded time between them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tierwise.model.errors import TierwiseError

DEFAULT_DUTY = "1/10"
_SEED = 1
_LEAST_LIMIT_BYTES = 1_000_000


@dataclass(frozen=True)
class Schedule:
    """Bursts of ``burst_s`` seconds that cover ``duty`` of the time, for ``seconds`` or until stopped.

    With a duty of 1, bursts are as long as memory allows, one after the other. The recording ends early when
    it has ``limit_bytes``.
    """

    seconds: float | None = 60.0
    duty: float = 0.1
    burst_s: float = 0.5
    limit_bytes: int = 1_000_000_000

    def __post_init__(self) -> None:
        """Refuse an invalid schedule.

        Raises:
            TierwiseError: naming the option.
        """
        if not 0 < self.duty <= 1:
            raise TierwiseError(
                f"--duty: {self.duty:g} is no share of the time", "use a fraction such as 1/10"
            )
        if self.seconds is not None and not 0 < self.seconds <= 7 * 86_400:
            raise TierwiseError(f"--duration: {self.seconds:g} s", "use more than 0 s and at most a week")
        if not 0.01 <= self.burst_s <= 60:
            raise TierwiseError(f"--burst: {self.burst_s:g} s", "use 0.01 to 60 s")
        if self.limit_bytes < _LEAST_LIMIT_BYTES:
            raise TierwiseError(
                f"--limit: {self.limit_bytes / 1e6:g} MB is too little for a burst", "use at least 1"
            )

    def gaps_s(self) -> Iterator[float]:
        """Time before each burst, in seconds, without end: randomised, with one burst in each period.

        A burst at a fixed point of every period would alias with periodic work.
        """
        chance = random.Random(_SEED)
        room_s = self.burst_s / self.duty - self.burst_s
        rest_s = 0.0
        while True:
            before_s = room_s * chance.uniform(0.25, 0.75)
            yield rest_s + before_s
            rest_s = room_s - before_s


def parse_duty(text: str) -> float:
    """A duty from text such as ``1/10``, ``0.1`` or ``10%``.

    Raises:
        TierwiseError: if the text is not a duty.
    """
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
