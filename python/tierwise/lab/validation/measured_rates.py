"""What slots measured: rates of placements, and ratios of rates within blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from tierwise.lab.validation.slot_rows import SlotRow
from tierwise.model.names import group_by_key
from tierwise.model.statistics import student_95
from tierwise.results.measurements import StrictModel

Blocks = dict[tuple[int, int], dict[str, float]]
"""Bring-up and block -> placement -> rate a second."""


class BlockEstimate(StrictModel):
    """A rate or a ratio over blocks: the geometric mean, with its 95 % interval by Student's distribution.

    Blocks of one bring-up are not independent: caches, memory and the layout of files are the same. With more
    than one bring-up, the interval is thus of the means of bring-ups.
    """

    value: float
    low: float
    high: float
    spread: float
    """Standard deviation over blocks, as a share."""
    blocks: int
    """Number of blocks."""

    @property
    def half_width(self) -> float:
        """How far the interval reaches to the wider side, as a share."""
        return self.high / self.value - 1

    def times(self, factor: float) -> BlockEstimate:
        """The same, multiplied."""
        return self.changed(value=self.value * factor, low=self.low * factor, high=self.high * factor)


def complete_blocks(rows: Sequence[SlotRow], placements: Sequence[str]) -> Blocks:
    """The complete blocks of a case: those with a rate of each placement."""
    blocks: Blocks = {}
    for row in rows:
        if row.kind == "slot" and row.rate_per_s:
            blocks.setdefault((row.bring_up, row.block), {})[row.placement] = row.rate_per_s
    return {block: rates for block, rates in sorted(blocks.items()) if rates.keys() >= set(placements)}


def placement_rate(blocks: Blocks, placement: str) -> BlockEstimate | None:
    """Rate of a placement over blocks; ``None`` with fewer than two."""
    return _measured({key: math.log(rates[placement]) for key, rates in blocks.items()})


def placement_ratio(blocks: Blocks, placement: str, reference: str) -> BlockEstimate | None:
    """Rate of a placement over that of another within the same block; ``None`` with fewer than two blocks."""
    return _measured({key: math.log(rates[placement] / rates[reference]) for key, rates in blocks.items()})


def rate_beside_recording(rows: Sequence[SlotRow], placement: str, block: int) -> float | None:
    """Rate beside the recording of a placement: of the slots just before and after it."""
    rates = [
        row.rate_per_s
        for row in rows
        if (row.kind, row.placement, row.block) == ("beside", placement, block) and row.rate_per_s
    ]
    return math.exp(fmean(map(math.log, rates))) if rates else None


def are_ratios_settled(
    blocks: Blocks, recorded: Sequence[str], placements: Sequence[str], half_width: float
) -> bool:
    """Whether each ratio to a recorded placement is known well enough."""
    ratios = [
        placement_ratio(blocks, placement, reference)
        for reference in recorded
        for placement in placements
        if placement != reference
    ]
    return all(measured is not None and measured.half_width <= half_width for measured in ratios)


def _measured(logs: Mapping[tuple[int, int], float]) -> BlockEstimate | None:
    if len(logs) < 2:
        return None
    groups = group_by_key((bring_up, log) for (bring_up, _), log in logs.items())
    independent = list(map(fmean, groups.values())) if len(groups) > 1 else list(logs.values())
    middle, count = fmean(independent), len(independent)
    half = student_95(count - 1) * stdev(independent) / math.sqrt(count)
    low, value, high = (math.exp(middle + offset) for offset in (-half, 0.0, half))
    return BlockEstimate(value=value, low=low, high=high, spread=stdev(logs.values()), blocks=len(logs))
