"""The rate with other sizes of memory, as points of a curve."""

from __future__ import annotations

from tierwise.results.measurements import Record


class MemoryPoint(Record):
    """The predicted rate with one size of memory, every file where it was recorded."""

    memory_bytes: int
    buffer_bytes: int | None
    """Of that, the engine's own buffer; ``None`` if it is not known."""
    rate_per_s: float
    low: float
    """Low end of the 95 % interval of the rate."""
    high: float
    """Its high end."""
    price_per_month: float | None
    """Of the memory, in the currency of the advice; ``None`` without a price."""
    all_fits: bool = False
    """Whether all files that are read fit from this size on."""
