"""Data and load grown together: a question as the simulator is asked it, and what that takes for granted."""

from __future__ import annotations

from tierwise.errors import TierwiseError
from tierwise.predict.prediction import RecordedRun
from tierwise.predict.question import Question
from tierwise.predict.replayed import WorkSummary

_LEAST_CACHE = 1 << 20
"""Memory that is left for the page cache beside the engine's own buffer, in bytes."""


def grown(question: Question, run: RecordedRun, work: WorkSummary) -> Question:
    """The question with so many times the recorded rate arriving, and with pages as seldom in memory.

    A page cache that has to hold so many times the data keeps of each file what one of a fraction of its size
    would: reuse distances grow with the data. The rate and the memory that the question names itself stay.

    Raises:
        TierwiseError: the recording shows no rate of transactions, or work that is done once.
    """
    if question.growth is None:
        return question
    if work.once or run.unit != "transactions":
        raise TierwiseError(
            "--growth needs transactions at a rate: the recording shows none, or work that is done once",
            "record clients that go on, with --dsn where their transactions cannot be told",
        )
    changes: dict[str, object] = {}
    if question.rate_per_s is None and question.clients is None:
        changes["rate_per_s"] = run.rate_per_s * question.growth
    if question.memory_bytes is None and work.can_change_memory:
        cache = work.page_cache
        less_bytes = round(cache.likely_bytes * (1 - 1 / question.growth))
        changes["memory_bytes"] = max(work.memory_bytes - less_bytes, cache.engine_bytes + _LEAST_CACHE)
    return question.model_copy(update=changes)


def assumed(question: Question, run: RecordedRun, work: WorkSummary) -> str | None:
    """What an answer of grown data takes for granted, as a sentence."""
    if question.growth is None:
        return None
    load = "as many clients as named"
    if question.clients is None:
        load = f"{question.rate_per_s or run.rate_per_s:,.4g} transactions arriving a second"
    cache = (
        "the page cache holds a smaller share of them"
        if work.can_change_memory
        else "the recording does not tell what another share of them in memory would change"
    )
    return (
        f"growth: files {question.growth:g} times as large, {load}; {cache}; "
        "each transaction does what it did, and the engine's own buffer answers the same share of its reads: "
        "enlarge it with the data"
    )
