"""The error of the model, learnt from pairs, so that intervals hold it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tierwise.predict import LearntError, ModelError
from tierwise.predict.model_error import ANY_ENGINE, What
from tierwise.validate.accuracy import Pair, by

_LEVEL = 0.95
_FEWEST = 20
"""With fewer pairs of an engine, a 95 % bound of its error is not learnt, and that of all engines holds."""


def learn(pairs: Sequence[Pair], day: str) -> ModelError:
    """Errors of rates and latencies, over all engines and of each that has enough pairs."""
    groups = {ANY_ENGINE: list(pairs)} | {
        engine: own for engine, own in by(pairs, "engine").items() if len(own) >= _FEWEST
    }
    found = [_learnt(engine, what, own, day) for engine, own in groups.items() for what in _figures()]
    return ModelError(errors=[one for one in found if one is not None])


def learn_without(pairs: Sequence[Pair], workload: str, day: str) -> ModelError:
    """The same from every other workload: what is known of one that nobody has tried."""
    return learn([pair for pair in pairs if pair.workload != workload], day)


def to_toml(learnt: ModelError) -> str:
    """The data file that predictions read."""
    parts = [
        "# Errors of predictions, learnt by `tierwise validate`; docs/accuracy.md tells how. Do not edit.\n"
    ]
    for one in learnt.errors:
        changes = ", ".join(f'"{change}"' for change in one.changes)
        parts.append(
            f'[[errors]]\nengine = "{one.engine}"\nwhat = "{one.what}"\nchanges = [{changes}]\n'
            f"cases = {one.cases}\nhalf_width = {one.half_width:.4f}\nbias = {one.bias:.4f}\n"
            f'learnt = "{one.learnt}"\n'
        )
    return "\n".join(parts)


def _figures() -> tuple[What, What]:
    return "rate", "latency"


def _learnt(engine: str, what: What, pairs: Sequence[Pair], day: str) -> LearntError | None:
    errors = sorted(_rate_errors(pairs) if what == "rate" else _latency_errors(pairs))
    if not errors:
        return None
    return LearntError(
        engine=engine,
        what=what,
        changes=["placement"],
        cases=len(errors),
        half_width=_bound(sorted(map(abs, errors))),
        bias=errors[len(errors) // 2],
        learnt=day,
    )


def _rate_errors(pairs: Sequence[Pair]) -> Iterator[float]:
    return (pair.log_error for pair in pairs if pair.log_error is not None)


def _latency_errors(pairs: Sequence[Pair]) -> Iterator[float]:
    for pair in pairs:
        yield from (math.log(predicted / measured) for predicted, measured in pair.latency_us.values())


def _bound(rising: Sequence[float]) -> float:
    """The value that a further one exceeds one time in twenty, whatever the distribution.

    The split conformal bound (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005): of
    n values, that of rank ceil(0.95 (n + 1)); the greatest where there are fewer than 19.
    """
    rank = math.ceil(_LEVEL * (len(rising) + 1))
    return rising[min(rank, len(rising)) - 1]
