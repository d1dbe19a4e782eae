"""Growth of data and load together: the scenario for the simulator, and its assumptions."""

from __future__ import annotations

from tierwise.model.errors import TierwiseError
from tierwise.model.units import significant
from tierwise.predict.prediction import RecordedRun
from tierwise.predict.replayed import WorkSummary
from tierwise.predict.scenario import Scenario

_LEAST_CACHE = 1 << 20
"""Least memory for the page cache beside the engine's own buffer, in bytes."""


def grown(scenario: Scenario, run: RecordedRun, work: WorkSummary) -> Scenario:
    """The scenario with the recorded rate multiplied by ``growth``, and a page cache scaled to match.

    Reuse distances grow with the data: with n times the data, a page cache holds the share of each file that
    one of 1/n its size held before. A rate or memory that the scenario names itself is kept.

    Raises:
        TierwiseError: the recording shows no rate of transactions, or work that is done once.
    """
    if scenario.growth is None:
        return scenario
    if work.once or run.unit != "transactions":
        raise TierwiseError(
            "--growth needs transactions at a rate: the recording shows none, or work that is done once",
            "record clients that go on, with --dsn where their transactions cannot be told",
        )
    changes: dict[str, object] = {}
    if scenario.rate_per_s is None and scenario.clients is None:
        changes["rate_per_s"] = run.rate_per_s * scenario.growth
    is_named = scenario.memory_bytes is not None and "memory_bytes" not in scenario.set_by_instance
    if not is_named and work.can_change_memory:
        cache = work.page_cache
        memory_bytes = scenario.memory_bytes or work.memory_bytes
        cache_bytes = max(cache.likely_bytes + memory_bytes - work.memory_bytes, 0)
        less_bytes = round(cache_bytes * (1 - 1 / scenario.growth))
        changes["memory_bytes"] = max(memory_bytes - less_bytes, cache.engine_bytes + _LEAST_CACHE)
    return scenario.changed(**changes, set_by_growth=sorted(changes))


def assumed(scenario: Scenario, run: RecordedRun, work: WorkSummary) -> str | None:
    """The assumptions of an answer with growth, as a sentence."""
    if scenario.growth is None:
        return None
    load = "as many clients as named"
    if scenario.clients is None:
        load = f"{significant(scenario.rate_per_s or run.rate_per_s)} transactions arriving a second"
    cache = (
        "the page cache holds a smaller share of them"
        if work.can_change_memory
        else "the recording does not tell what another share of them in memory would change"
    )
    return (
        f"growth: files {scenario.growth:g} times as large, {load}; {cache}; "
        "each transaction does what it did, and the engine's own buffer answers the same share of its reads: "
        "enlarge it with the data"
    )
