"""The goal of a user, and whether a prediction reaches it."""

from __future__ import annotations

import re
from typing import Literal

from tierwise.model.errors import TierwiseError
from tierwise.predict import Estimate, Prediction
from tierwise.predict.ranking import Ranked
from tierwise.results.measurements import Record

What = Literal["tps", "p50", "p95", "p99"]
Verdict = Literal["missed", "likely missed", "likely reached", "reached"]
VERDICTS: tuple[Verdict, ...] = ("missed", "likely missed", "likely reached", "reached")
"""From no part of the interval at or beyond the goal, over its best end and the best guess, to all of it."""
_UNITS_US = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_PATTERN = re.compile(r"(tps|p50|p95|p99)=(\d+(?:\.\d+)?)(us|µs|ms|s)?")
_FIELDS: dict[What, str] = {"tps": "rate_per_s", "p50": "p50_us", "p95": "p95_us", "p99": "p99_us"}
_NEAR = 0.9
_FIX = "write for example tps=2000 or p99=5ms"


class Goal(Record):
    """A rate to reach, or a latency to keep below."""

    what: What
    bound: float
    """Transactions a second, or µs."""

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read ``tps=2000`` or ``p99=5ms``.

        Raises:
            TierwiseError: anything else.
        """
        match = _PATTERN.fullmatch(text.strip())
        if not match:
            raise TierwiseError(f"--goal: {text!r} is no goal", _FIX)
        what, number, unit = match.groups()
        if (what == "tps") == (unit is not None) or float(number) <= 0:
            raise TierwiseError(f"--goal: {text!r} has no unit that fits, or is 0", _FIX)
        return cls.model_validate({"what": what, "bound": float(number) * _UNITS_US.get(unit, 1.0)})

    def figure(self, prediction: Prediction) -> Estimate | None:
        """The figure of a prediction that the goal is about."""
        figure: Estimate | None = getattr(prediction, _FIELDS[self.what])
        return figure

    def near(self, ranked: Ranked) -> bool:
        """Whether a first look, under one seed, came within a tenth of it."""
        if self.what == "tps":
            return ranked.rate_per_s >= _NEAR * self.bound
        return self.distance(ranked) <= self.bound / _NEAR

    def distance(self, ranked: Ranked) -> float:
        """A figure of a first look that is smaller, the better it serves the goal."""
        figure: float = getattr(ranked, _FIELDS[self.what])
        return -figure if self.what == "tps" else figure

    def verdict(self, prediction: Prediction) -> Verdict:
        """Whether a prediction reaches it, by where the goal lies in the interval and from the best guess."""
        figure = self.figure(prediction)
        if figure is None:
            return "missed"
        if self.what == "tps":
            reached = [end >= self.bound for end in (figure.low, figure.value, figure.high)]
        else:
            reached = [end <= self.bound for end in (figure.high, figure.value, figure.low)]
        return VERDICTS[sum(reached)]
