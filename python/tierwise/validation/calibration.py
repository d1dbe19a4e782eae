"""The error of the model, calibrated from pairs and included in intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, get_args

from tierwise.model.extras import np
from tierwise.predict import CalibratedError, ModelError
from tierwise.predict.model_error import ANY, What
from tierwise.validation.accuracy import Pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEVEL = 0.95
_LEAST_SPREAD = 0.01
_PER_COEFFICIENT = 10
_FEWEST = 10
"""With fewer predictions of an engine on a path, those of all engines, or on all paths, replace them."""

Error = tuple[str, float, float]
"""Family; logarithm of the predicted speed-up; logarithm of predicted over measured."""


def calibrate(pairs: Sequence[Pair], day: str) -> ModelError:
    """Errors of each engine and of all engines, on each path and on all paths, where there are enough."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        if not pair.control:
            groups.setdefault((pair.engine, pair.path), []).append(pair)
            groups.setdefault((ANY, pair.path), []).append(pair)
            groups.setdefault((ANY, ANY), []).append(pair)
    found = [
        _learnt(engine, path, what, own, day)
        for (engine, path), own in sorted(groups.items())
        for what in get_args(What)
    ]
    return ModelError(errors=[one for one in found if one is not None])


def calibrate_without(pairs: Sequence[Pair], family: str, day: str) -> ModelError:
    """Errors calibrated from all other families of clients, as for a client that was never measured."""
    return calibrate([pair for pair in pairs if pair.family != family], day)


def to_toml(calibrated: ModelError) -> str:
    """The data file that predictions read."""
    parts = [
        "# Errors of predictions, written by `tierwise validate` (docs/evidence/accuracy.md). Do not edit.\n"
    ]
    for one in calibrated.errors:
        changes = ", ".join(f'"{change}"' for change in one.changes)
        parts.append(
            f'[[errors]]\nengine = "{one.engine}"\npath = "{one.path}"\nwhat = "{one.what}"\n'
            f"changes = [{changes}]\ncases = {one.cases}\nfamilies = {one.families}\n"
            f"half_width = {one.half_width:.4f}\nper_faster = {one.per_faster:.4f}\n"
            f"per_slower = {one.per_slower:.4f}\nbias = {one.bias:.4f}\n"
            f'calibrated = "{one.calibrated}"\n'
        )
    return "\n".join(parts)


def _learnt(engine: str, path: str, what: What, pairs: Sequence[Pair], day: str) -> CalibratedError | None:
    found = list(_rate_errors(pairs) if what == "rate" else _percentile_errors(pairs, what))
    if len(found) < _FEWEST:
        return None
    families = [family for family, _, _ in found]
    far, errors = (np.array(column) for column in zip(*[one[1:] for one in found], strict=True))
    weights = _weights(families)
    columns = np.stack([np.ones_like(far), np.maximum(far, 0.0), np.maximum(-far, 0.0)], axis=1)
    spread = _spread(columns, np.abs(errors), weights)
    bound = _bound(np.abs(errors) / (columns @ spread), weights)
    half_width, per_faster, per_slower = (float(bound * one) for one in spread)
    return CalibratedError(
        engine=engine,
        path=path,
        what=what,
        changes=["placement"],
        cases=len(errors),
        families=len(set(families)),
        half_width=half_width,
        per_faster=per_faster,
        per_slower=per_slower,
        bias=float(np.median(errors)),
        calibrated=day,
    )


def _rate_errors(pairs: Sequence[Pair]) -> Iterator[Error]:
    for pair in pairs:
        if pair.log_error is not None and pair.speedup:
            yield pair.family, math.log(pair.speedup), pair.log_error


def _percentile_errors(pairs: Sequence[Pair], what: What) -> Iterator[Error]:
    for pair in pairs:
        if pair.speedup and what in pair.latency:
            figure = pair.latency[what]
            yield pair.family, math.log(pair.speedup), math.log(figure.predicted.value / figure.measured)


def _weights(families: Sequence[str]) -> NDArray[np.float64]:
    """Weight of each error: families count alike. The weights sum to the number of errors."""
    count = {family: families.count(family) for family in families}
    each = np.array([1 / count[family] for family in families])
    scaled: NDArray[np.float64] = each * len(families) / each.sum()
    return scaled


def _spread(
    columns: NDArray[np.float64], errors: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Size of errors: a constant, and a slope per factor e of being faster, and of being slower.

    Weighted least squares without negative coefficients, over all subsets of the last two. Each needs
    ten errors (Harrell, *Regression Modeling Strategies*, 2015, section 4.4). With fewer than 20 all are
    alike.
    """
    root = np.sqrt(weights)
    most = min(3, max(1, len(errors) // _PER_COEFFICIENT))
    found = []
    for parts in [used for count in range(most) for used in combinations((1, 2), count)]:
        used = [0, *parts]
        solution = np.linalg.lstsq(columns[:, used] * root[:, None], errors * root, rcond=None)[0]
        spread = np.zeros(3)
        spread[used] = np.maximum(solution, 0.0)
        spread[0] = max(spread[0], _LEAST_SPREAD)
        found.append((float(np.sum(weights * (columns @ spread - errors) ** 2)), spread))
    return min(found, key=lambda one: one[0])[1]


def _bound(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The bound that a new value exceeds one time in twenty, whatever the distribution.

    The split conformal bound (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005): of
    n values, that of rank ceil(0.95 (n + 1)); the greatest if there are fewer than 19. It is the bound of
    errors over their spread, so that intervals are wide where errors are large (Papadopoulos, Gammerman and
    Vovk, *Normalized nonconformity measures for regression conformal prediction*, 2008), and with weights, so
    that no family decides it alone (Tibshirani, Barber, Candès and Ramdas, *Conformal Prediction Under
    Covariate Shift*, 2019).
    """
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    at = int(np.searchsorted(reached, _LEVEL * (len(values) + 1) - 1e-9))
    return float(values[order][min(at, len(values) - 1)])
