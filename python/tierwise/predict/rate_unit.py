"""The unit of rates, and the engine's own count of it."""

from __future__ import annotations

from typing import Literal

from tierwise.model.errors import TierwiseError
from tierwise.model.names import unknown_name_fix
from tierwise.predict.simulator_output import WorkSummary
from tierwise.recording import RecordingMetadata

Unit = Literal["transactions", "requests", "slices"]

FEWEST_UNITS = 100
"""Fewest recorded transactions: with this number, chance alone moves the rate by 10 % (1/√n)."""
_ASKED: tuple[Unit, ...] = ("transactions", "requests")


def parse_rate_unit(text: str) -> Unit:
    """A unit from the command line."""
    for unit in _ASKED:
        if text == unit:
            return unit
    raise TierwiseError(f"--unit: {text!r} is no unit of work", unknown_name_fix(text, _ASKED))


def rate_unit_of(work: WorkSummary, asked: Unit | None) -> Unit:
    """The unit of rates: requests if asked for, or if the recording shows no end of a transaction.

    Of a library's caller that reads only, the recording shows neither: slices of time are counted.
    """
    if work.observed.sliced and not work.once:
        return "slices"
    return "transactions" if work.transactions > 0 and asked != "requests" else "requests"


def count_factor(about: RecordingMetadata, work: WorkSummary) -> float | None:
    """Ratio of the counted transactions to what the events show; ``None`` without a count.

    Unlike :func:`counted_to_shown_ratio`, also where the rates of ``work`` already follow the count.
    """
    if about.transactions == 0 and about.counters and work.transactions and not work.once:
        return 0.0
    followed = work.observed.counted_per_shown or 1.0
    if work.once:  # of a job, the count tells nothing unless its many requests end nothing
        return max(followed, 1.0) if work.turns >= FEWEST_UNITS else None
    rest = counted_to_shown_ratio(about, work)
    return None if rest is None else rest * followed


def counted_to_shown_ratio(about: RecordingMetadata, work: WorkSummary) -> float | None:
    """Ratio of counted transactions to those that the events show; ``None`` if either is not known.

    Both are at the rate without recording: bursts are slower than the time between them.
    """
    if about.transactions is None or work.once or work.observed.transactions_per_s <= 0:
        return None
    slowed = 1.0 if about.cost is None or not about.cost.is_known else about.cost.rate_ratio
    undisturbed_s = about.duration_s - about.bursts_s * (1.0 - min(slowed, 1.0))
    if about.transactions == 0 or undisturbed_s <= 0:
        return None
    return about.transactions / undisturbed_s / work.observed.transactions_per_s
