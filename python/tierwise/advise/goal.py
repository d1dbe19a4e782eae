"""The goal of a user."""

from __future__ import annotations

import re
from typing import Literal

from tierwise.model.errors import TierwiseError
from tierwise.predict import Estimate, Prediction
from tierwise.predict.ranking import Ranked
from tierwise.results.measurements import Record

What = Literal["tps", "p50", "p95", "p99"]
_UNITS_US = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_PATTERN = re.compile(r"(tps|p50|p95|p99)=(\d+(?:\.\d+)?)(us|µs|ms|s)?")
_NEAR = 0.9
_MONEY = re.compile(r"\$?(\d+(?:\.\d+)?)\$?(?:/(?:month|mo|m))?")
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
        figures = {
            "tps": prediction.rate_per_s,
            "p50": prediction.p50_us,
            "p95": prediction.p95_us,
            "p99": prediction.p99_us,
        }
        return figures[self.what]

    def near(self, ranked: Ranked) -> bool:
        """Whether a first look, under one seed, came within a tenth of it."""
        figures = {"p50": ranked.p50_us, "p95": ranked.p95_us, "p99": ranked.p99_us}
        if self.what == "tps":
            return ranked.rate_per_s >= _NEAR * self.bound
        return figures[self.what] <= self.bound / _NEAR

    def reached(self, prediction: Prediction, *, surely: bool = False) -> bool:
        """Whether a prediction reaches it; ``surely``: with its whole interval."""
        figure = self.figure(prediction)
        if figure is None:
            return False
        if self.what == "tps":
            return (figure.low if surely else figure.value) >= self.bound
        return (figure.high if surely else figure.value) <= self.bound


def parse_budget_usd(text: str) -> float:
    """US dollars a month in ``50/month`` or ``$50``.

    Raises:
        TierwiseError: anything else.
    """
    match = _MONEY.fullmatch(text.strip())
    if not match:
        raise TierwiseError(f"--budget: {text!r} is no amount of money", "write for example 50/month")
    return float(match[1])
