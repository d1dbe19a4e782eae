"""What each mechanism of the model is worth: recordings and validated predictions, with and without it.

``python benchmarks/ablation.py FOLDER [--only MECHANISM...]`` judges rounds of ``tierwise validate`` in a
folder, with their recordings, once in full and once for each mechanism switched off. The intervals of a
family of clients include the error calibrated from all other families, also without the mechanism.
It prints a Markdown table: the mean interval score (lower is better); the mean of |ln(predicted/measured)|,
and of |ln(reproduced / recorded)|, which no difference between two runs disturbs; how much each rises
without the mechanism, with a 95 % bootstrap interval over cases. Nothing is measured.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tierwise import _core
from tierwise.lab.validation.prediction_accuracy import PredictionAccuracy, summarise_pairs
from tierwise.lab.validation.round_judging import judge_rounds, rounds_in

RESAMPLES = 2000
CHANCE = 0.002
"""Mean rise below which a mechanism is reported to change nothing."""
Key = tuple[str, str, str, int, str]


def _silent(_: str) -> None:
    """The judgement of each recording needs no line of its own."""


def main() -> int:
    """Judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=_core.Replay.mechanisms())
    options = parser.parse_args()
    rounds = rounds_in(options.folder)
    whole = judge_rounds(rounds, _silent)[0]
    print("| switched off | interval score | predicted | rises by | reproduced | rises by | |")
    print("|" + " --- |" * 7)
    print(_row("nothing", whole, "", "", ""), flush=True)
    for name in options.only:
        judged = judge_rounds(rounds, _silent, [name])[0]
        rises = _rise(_predicted(whole), _predicted(judged)), _rise(_reproduced(whole), _reproduced(judged))
        print(_row(name, judged, *map(_interval, rises), _meaning(*rises)), flush=True)
    return 0


def _row(name: str, accuracy: PredictionAccuracy, *columns: str) -> str:
    rise, reproduced_rise, meaning = columns
    score = summarise_pairs(accuracy.predictions).score or 0.0
    predicted, reproduced = (
        f"{100 * np.mean(list(errors.values())):.1f} %"
        for errors in (_predicted(accuracy), _reproduced(accuracy))
    )
    return f"| {name} | {score:.3f} | {predicted} | {rise} | {reproduced} | {reproduced_rise} | {meaning} |"


def _predicted(accuracy: PredictionAccuracy) -> dict[Key, float]:
    return {
        (pair.case, pair.recorded, pair.placement, pair.block, pair.round): abs(pair.log_error)
        for pair in accuracy.predictions
        if pair.log_error is not None
    }


def _reproduced(accuracy: PredictionAccuracy) -> dict[Key, float]:
    return {
        (recording.case, recording.recorded, recording.recorded, recording.block, recording.round): abs(
            math.log1p(recording.error)
        )
        for recording in accuracy.recordings
        if recording.error is not None
    }


def _rise(whole: Mapping[Key, float], without: Mapping[Key, float]) -> tuple[float, float, float]:
    """Mean rise of the common errors, with its interval; the bootstrap resamples cases, not errors."""
    cases: dict[str, list[float]] = {}
    for key in whole.keys() & without.keys():
        cases.setdefault(key[0], []).append(without[key] - whole[key])
    random = np.random.default_rng(0)
    drawn = random.integers(len(cases), size=(RESAMPLES, len(cases)))
    sums, counts = (np.array([of(cases[name]) for name in sorted(cases)]) for of in (sum, len))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return float(sums.sum() / counts.sum()), float(low), float(high)


def _interval(rise: tuple[float, float, float]) -> str:
    mean, low, high = (100 * end for end in rise)
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def _meaning(*rises: tuple[float, float, float]) -> str:
    if any(low > 0 for _, low, _ in rises):
        return "helps"
    if any(high < 0 for _, _, high in rises):
        return "harms"
    return "no change" if all(abs(mean) < CHANCE for mean, _, _ in rises) else "not significant"


if __name__ == "__main__":
    sys.exit(main())
