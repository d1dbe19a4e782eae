"""What each mechanism of the model is worth: predictions of validated rounds, with and without it.

``python benchmarks/ablation.py FOLDER [--only MECHANISM...]`` judges rounds of ``tierwise validate`` in a folder, with
their recordings, once as they are and once for each mechanism switched off. The intervals of a family of clients hold
the error that was learnt, without the mechanism too, from all other families. Printed as a Markdown table: the mean
interval score (lower is better), the mean of |ln(predicted / measured)| of predictions and of controls, and how much
the latter two rise without the mechanism, with a 95 % bootstrap interval over cases. Nothing is measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tierwise import _core, validate
from tierwise.validate.accuracy import Pair, by, summary

RESAMPLES = 2000
CHANCE = 0.002
"""Mean rise below which a mechanism is said to change nothing."""
Key = tuple[str, str, str, int, str]


def main() -> int:
    """Judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=_core.Replay.mechanisms())
    options = parser.parse_args()
    rounds = validate.rounds_in(options.folder)
    whole = validate.judge(rounds, str)[0]
    print("| switched off | interval score | error | rises by | controls | rise by | |\n|" + " --- |" * 7)
    print(_row("nothing", whole.predictions, whole.controls, "", "", ""), flush=True)
    for name in options.only:
        found = validate.judge(rounds, str, [name])[0]
        rise = _rise(whole.predictions, found.predictions)
        control_rise = _rise(whole.controls, found.controls)
        columns = (*map(_interval, (rise, control_rise)), _meaning(rise, control_rise))
        print(_row(name, found.predictions, found.controls, *columns), flush=True)
    return 0


def _row(name: str, predictions: Sequence[Pair], controls: Sequence[Pair], *columns: str) -> str:
    rise, control_rise, meaning = columns
    score = summary(predictions).score or 0.0
    errors = [f"{100 * np.mean(list(_errors(pairs).values())):.1f} %" for pairs in (predictions, controls)]
    return f"| {name} | {score:.3f} | {errors[0]} | {rise} | {errors[1]} | {control_rise} | {meaning} |"


def _errors(pairs: Sequence[Pair]) -> dict[Key, float]:
    return {_key(pair): abs(pair.log_error) for pair in pairs if pair.log_error is not None}


def _key(pair: Pair) -> Key:
    return pair.case, pair.recorded, pair.placement, pair.block, pair.round


def _rise(whole: Sequence[Pair], without: Sequence[Pair]) -> tuple[float, float, float]:
    """Mean rise of the errors of what both answered, with its interval: cases are drawn, not pairs."""
    errors = _errors(without)
    cases = [
        [errors[_key(pair)] - abs(pair.log_error) for pair in own if pair.log_error is not None and _key(pair) in errors]
        for own in by(whole, "case").values()
    ]
    cases = [own for own in cases if own]
    random = np.random.default_rng(0)
    drawn = random.integers(len(cases), size=(RESAMPLES, len(cases)))
    sums, counts = np.array([sum(own) for own in cases]), np.array([len(own) for own in cases])
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(sums.sum() / counts.sum()), float(low), float(high)


def _interval(rise: tuple[float, float, float]) -> str:
    mean, low, high = (100 * one for one in rise)
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def _meaning(*rises: tuple[float, float, float]) -> str:
    if any(low > 0 for _, low, _ in rises):
        return "helps"
    if any(high < 0 for _, _, high in rises):
        return "harms"
    return "no change" if all(abs(mean) < CHANCE for mean, _, _ in rises) else "not significant"


if __name__ == "__main__":
    sys.exit(main())
