"""The error of the model, learnt from pairs, so that intervals hold it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tierwise.predict import LearntError, ModelError
from tierwise.predict.model_error import What, path_between
from tierwise.validate.accuracy import Pair, by

_LEVEL = 0.95
_LEAST_SPREAD = 0.01
_PATH = path_between("emulated", "emulated")
"""What is recorded and measured here."""
_WHATS: tuple[What, ...] = ("rate", "p50", "p95", "p99")


def learn(pairs: Sequence[Pair], day: str) -> ModelError:
    """Errors of rates and of each percentile of latency, of each engine."""
    groups = by(pairs, "engine").items()
    found = [_learnt(engine, what, own, day) for engine, own in groups for what in _WHATS]
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
            f'[[errors]]\nengine = "{one.engine}"\npath = "{one.path}"\nwhat = "{one.what}"\n'
            f"changes = [{changes}]\ncases = {one.cases}\nfamilies = {one.families}\n"
            f"half_width = {one.half_width:.4f}\nper_faster = {one.per_faster:.4f}\n"
            f"per_slower = {one.per_slower:.4f}\nbias = {one.bias:.4f}\n"
            f'learnt = "{one.learnt}"\n'
        )
    return "\n".join(parts)


def _learnt(engine: str, what: What, pairs: Sequence[Pair], day: str) -> LearntError | None:
    found = list(_rate_errors(pairs) if what == "rate" else _latency_errors(pairs, what))
    if not found:
        return None
    far, errors = (np.array(column) for column in zip(*found, strict=True))
    columns = np.stack([np.ones_like(far), np.maximum(far, 0.0), np.maximum(-far, 0.0)], axis=1)
    spread = _spread(columns, np.abs(errors))
    bound = _bound(sorted(np.abs(errors) / (columns @ spread)))
    half_width, per_faster, per_slower = (float(bound * one) for one in spread)
    return LearntError(
        engine=engine,
        path=_PATH,
        what=what,
        changes=["placement"],
        cases=len(errors),
        half_width=half_width,
        per_faster=per_faster,
        per_slower=per_slower,
        bias=float(np.median(errors)),
        learnt=day,
    )


def _rate_errors(pairs: Sequence[Pair]) -> Iterator[tuple[float, float]]:
    """Logarithms of each speed-up and of its error."""
    for pair in pairs:
        if pair.log_error is not None and pair.speedup:
            yield math.log(pair.speedup), pair.log_error


def _latency_errors(pairs: Sequence[Pair], what: What) -> Iterator[tuple[float, float]]:
    for pair in pairs:
        if pair.speedup and f"{what}_us" in pair.latency_us:
            predicted, measured = pair.latency_us[f"{what}_us"]
            yield math.log(pair.speedup), math.log(predicted / measured)


def _spread(columns: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """How great errors are: always, and for each factor e of being faster, and of being slower.

    Least squares with no coefficient below 0, by trying which of the last two take part.
    """
    found = []
    for parts in [used for count in range(3) for used in combinations((1, 2), count)]:
        used = [0, *parts]
        solution = np.linalg.lstsq(columns[:, used], errors, rcond=None)[0]
        spread = np.zeros(3)
        spread[used] = np.maximum(solution, 0.0)
        spread[0] = max(spread[0], _LEAST_SPREAD)
        found.append((float(np.sum((columns @ spread - errors) ** 2)), spread))
    return min(found, key=lambda one: one[0])[1]


def _bound(rising: Sequence[float]) -> float:
    """The value that a further one exceeds one time in twenty, whatever the distribution.

    The split conformal bound (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005): of
    n values, that of rank ceil(0.95 (n + 1)); the greatest where there are fewer than 19. It is taken of
    errors over their spread, so that intervals are wide where errors are great (Papadopoulos, Gammerman and
    Vovk, *Normalized nonconformity measures for regression conformal prediction*, 2008).
    """
    rank = math.ceil(_LEVEL * (len(rising) + 1))
    return rising[min(rank, len(rising)) - 1]
