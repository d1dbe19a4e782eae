"""What rates count, and how many of these the engine counted itself."""

from __future__ import annotations

from typing import Literal

from tierwise.model.errors import TierwiseError
from tierwise.model.suggestions import one_of
from tierwise.predict.replayed import WorkSummary
from tierwise.recording import About

Unit = Literal["transactions", "requests"]

_UNITS: tuple[Unit, ...] = ("transactions", "requests")


def parse_unit(text: str) -> Unit:
    """A unit as on the command line.

    Raises:
        TierwiseError: if it is none.
    """
    for unit in _UNITS:
        if text == unit:
            return unit
    raise TierwiseError(f"--unit: {text!r} is no unit of work", one_of(text, _UNITS))


def unit_of(work: WorkSummary, asked: Unit | None) -> Unit:
    """What rates count: requests where they are asked for, or where no transaction is seen to end."""
    return "transactions" if work.transactions > 0 and asked != "requests" else "requests"


def counted_over_shown(about: About, work: WorkSummary) -> float | None:
    """Transactions that were counted over those that the events show; ``None`` where either is not known.

    Both at the rate without recording: bursts are slower than the time between them.
    """
    if about.transactions is None or work.once or work.observed.transactions_per_s <= 0:
        return None
    traced_s = sum(burst.end_ns - burst.start_ns for burst in about.bursts) / 1e9
    slowed = 1.0 if about.cost is None or about.cost.rate_ratio_low <= 0 else about.cost.rate_ratio
    undisturbed_s = about.duration_s - traced_s * (1.0 - min(slowed, 1.0))
    if about.transactions == 0 or undisturbed_s <= 0:
        return None
    return about.transactions / undisturbed_s / work.observed.transactions_per_s
