"""The error of the model, calibrated from pairs and included in intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, get_args

from tierwise.lab.validation.prediction_accuracy import PredictionPair
from tierwise.model.extras import np
from tierwise.model.names import group_by_key
from tierwise.predict import CalibratedError, ModelError
from tierwise.predict.model_error import ANY, What

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEVEL = 0.95
_LEAST_HALF_WIDTH = 0.01
_APART = 1e-3
"""Shares closer than this are alike."""
_FEWEST = 10
"""With fewer predictions nothing is learnt."""
_FEWEST_CASES = 20
"""A bound that one of twenty new cases exceeds takes as many. With fewer cases of an engine or on a path,
those of all engines, or on all paths, replace them; percentiles are not learnt."""

Error = tuple[str, float, float]
"""Case; gained share of time on processors; logarithm of predicted over measured."""


def calibrate_model_error(pairs: Sequence[PredictionPair], day: str) -> ModelError:
    """Errors of each engine and of all engines, on each path and on all paths, where there are enough."""
    groups = group_by_key(
        (group, pair)
        for pair in pairs
        if not pair.control
        for group in ((pair.engine, pair.path), (ANY, pair.path), (ANY, ANY))
    )
    errors = [
        _learnt(engine, path, what, own, day)
        for (engine, path), own in sorted(groups.items())
        for what in get_args(What)
    ]
    return ModelError(errors=[error for error in errors if error is not None])


def calibrate_without_family(pairs: Sequence[PredictionPair], family: str, day: str) -> ModelError:
    """Errors calibrated from all other families of clients, as for a client that was never measured."""
    return calibrate_model_error([pair for pair in pairs if pair.family != family], day)


def calibration_toml(calibrated: ModelError) -> str:
    """The data file that predictions read."""
    parts = [
        "# Errors of predictions, written by `tierwise validate` (docs/evidence/accuracy.md). Do not edit.\n"
    ]
    for error in calibrated.errors:
        values = {
            name: f"{value:.4f}" if isinstance(value, float) else json.dumps(value) for name, value in error
        }
        parts.append("[[errors]]\n" + "".join(f"{name} = {value}\n" for name, value in values.items()))
    return "\n".join(parts)


def _learnt(
    engine: str, path: str, what: What, pairs: Sequence[PredictionPair], day: str
) -> CalibratedError | None:
    known = list(_errors(pairs, what))
    cases = [case for case, _, _ in known]
    widest = (engine, path, what) == (ANY, ANY, "rate")
    if len(known) < _FEWEST or (not widest and len(set(cases)) < _FEWEST_CASES):
        return None
    gained, errors = (np.array(column) for column in zip(*[row[1:] for row in known], strict=True))
    each = np.array([1 / cases.count(case) for case in cases])
    # Cases count alike; the weights sum to the number of errors.
    half_width, per_computing = _half_widths(gained, np.abs(errors), each * len(cases) / each.sum())
    return CalibratedError(
        engine=engine,
        path=path,
        what=what,
        changes=["placement"],
        cases=len(set(cases)),
        families=len({pair.family for pair in pairs}),
        half_width=half_width,
        per_computing=per_computing,
        bias=float(np.median(errors)),
        calibrated=day,
    )


def _errors(pairs: Sequence[PredictionPair], what: What) -> Iterator[Error]:
    for pair in pairs:
        error = pair.log_error if what == "rate" else None
        if figure := pair.latency.get(what):
            error = math.log(figure.predicted.value / figure.measured)
        if error is not None and pair.gained is not None:
            yield pair.case, pair.gained, error


def _half_widths(
    gained: NDArray[np.float64], errors: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Half width of a 95 % interval where no processor time is gained, and its rise with the gained share.

    Both are at least 0. Linear regression of the 95 % quantile (Koenker and Bassett, *Regression Quantiles*,
    1978), raised to the split conformal bound (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random
    World*, 2005): of n errors over their half widths, that of rank ceil(0.95 (n + 1)), the greatest if there
    are fewer than 19. Errors are weighted (Tibshirani, Barber, Candès and Ramdas, *Conformal Prediction Under
    Covariate Shift*, 2019).
    """
    # The best line passes through two of the points, or through one and a bound of its coefficients.
    first, second = np.triu_indices(len(errors), k=1)
    run = gained[second] - gained[first]
    apart = np.abs(run) > _APART
    slopes = (errors[second] - errors[first])[apart] / run[apart]
    some = gained > _APART
    steepest = (errors[some] - _LEAST_HALF_WIDTH) / gained[some]
    lines = np.concatenate(
        [
            np.stack([errors[first][apart] - slopes * gained[first][apart], slopes], axis=1),
            np.stack([errors, np.zeros_like(errors)], axis=1),
            np.stack([np.full_like(steepest, _LEAST_HALF_WIDTH), steepest], axis=1),
            [[_LEAST_HALF_WIDTH, 0.0]],
        ]
    )
    lines = lines[(lines >= [_LEAST_HALF_WIDTH, 0.0]).all(axis=1)]
    above = errors - lines @ np.stack([np.ones_like(gained), gained])
    losses = np.maximum(_LEVEL * above, (_LEVEL - 1) * above) @ weights
    fitted = lines[np.argmin(losses)]
    ratios = errors / (fitted[0] + fitted[1] * gained)
    order = np.argsort(ratios)
    reached = np.cumsum(weights[order])
    at = int(np.searchsorted(reached, _LEVEL * (len(errors) + 1) - 1e-9))
    half_width, per_computing = fitted * max(ratios[order][min(at, len(errors) - 1)], 1.0)
    return float(half_width), float(per_computing)
