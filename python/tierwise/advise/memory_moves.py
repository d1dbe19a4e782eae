"""Memory instead of a move: what more of it gains, up to where it holds all files, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise.option import MARGIN, Option, is_told
from tierwise.device_models.prices import Prices
from tierwise.model.placement import Role
from tierwise.predict import Prediction, Predictor, Scenario
from tierwise.results.measurements import Record

_SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Sizes that are tried, as shares of what is missing to hold all files."""
_STEP = 64 << 20
"""Sizes are whole multiples of it."""
_GIB = 1 << 30
_READ = (Role.DATA, Role.INDEX, Role.SELECTED, Role.UNDO, Role.SYSTEM)
"""Roles whose pages an engine's buffer, or else the page cache, may hold: those of the crate ``work``."""


class MemoryMove(Record):
    """More memory, every file where it was recorded."""

    memory_bytes: int
    """Of the machine."""
    buffer_bytes: int | None
    """The engine's own buffer, which takes what is added, and first what no file uses if the engine reads its
    files past the page cache; ``None`` if the page cache takes it."""
    added_bytes: int
    """Memory of the machine, more than recorded; 0 if the buffer takes what is there."""
    holds_all: bool
    """Whether all tables and indexes fit."""
    prediction: Prediction
    gain_per_s: float
    """More transactions a second than as recorded."""
    cost_per_month: float | None
    """Of what is added; ``None`` if the price of memory is not known in the currency."""
    worthwhile: bool
    """Whether its gain can be told from none, and the median latency gets no longer."""


def memory_moves(predictor: Predictor, prices: Prices, staying: Prediction) -> list[MemoryMove]:
    """Sizes of memory up to that of all tables and indexes, ascending; none if reads wait for no device.

    Args:
        predictor: of the recording.
        prices: with that of memory.
        staying: what they are compared with.
    """
    work = predictor.work
    if not work.can_change_memory or not work.memory_bytes or not sum(work.demands.reads.values()):
        return []
    files = sum(size for role, size in work.footprints.items() if role in _READ)
    buffer = work.page_cache.engine_bytes
    missing = files - (buffer or work.page_cache.likely_bytes)
    added = sorted({_whole(share * missing) for share in _SHARES}) if missing > 0 else []
    free = work.page_cache.likely_bytes if buffer and work.page_cache.passed else 0
    sizes = [
        {
            "memory_bytes": work.memory_bytes + max(0, more - free),
            "buffer_bytes": buffer + more if buffer else None,
        }
        for more in added
    ]
    scenarios = [staying.scenario.model_copy(update=size) for size in sizes]
    moves = [
        _move(scenario, answer, staying, max(0, more - free), prices, holds_all=more >= missing)
        for scenario, answer, more in zip(scenarios, predictor.predict(scenarios), added, strict=True)
    ]
    return [move for move in moves if move is not None]


def equal(moves: Sequence[MemoryMove], option: Option) -> MemoryMove | None:
    """The smallest memory that is at least as fast as an option, within the margin; ``None`` if none is."""
    rate = option.prediction.rate_per_s
    if option.stays or rate is None:
        return None
    rates = [(move, move.prediction.rate_per_s) for move in moves if move.worthwhile]
    return next((move for move, own in rates if own and own.value * MARGIN >= rate.value), None)


def _move(
    scenario: Scenario,
    answer: Prediction,
    recorded: Prediction,
    added: int,
    prices: Prices,
    *,
    holds_all: bool,
) -> MemoryMove | None:
    if answer.rate_per_s is None or recorded.rate_per_s is None or scenario.memory_bytes is None:
        return None
    price = prices.memory
    return MemoryMove(
        memory_bytes=scenario.memory_bytes,
        buffer_bytes=scenario.buffer_bytes,
        added_bytes=added,
        holds_all=holds_all,
        prediction=answer,
        gain_per_s=answer.rate_per_s.value - recorded.rate_per_s.value,
        cost_per_month=None if price is None else price.per_gib_month * added / _GIB,
        worthwhile=is_told(answer, recorded),
    )


def _whole(size: float) -> int:
    return -(-int(size) // _STEP) * _STEP
