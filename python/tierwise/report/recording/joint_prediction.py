"""Predictions of databases that share devices, as a document."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.predict import JointPrediction
from tierwise.report import numbers
from tierwise.report.document import Block, Table, Text, Tone, estimate, table
from tierwise.report.recording.prediction import speedup, warnings_of
from tierwise.report.recording.prediction_words import scenario_parts


def joint_document(answers: Sequence[JointPrediction]) -> list[Block]:
    """What sharing costs, a row for each database, and warnings."""
    worst = min(answers, key=lambda answer: answer.kept.value)
    return [
        Text(_sentence(answers, worst), Tone.HEADLINE),
        _table(answers),
        *warnings_of([answer.together for answer in answers]),
    ]


def _sentence(answers: Sequence[JointPrediction], worst: JointPrediction) -> str:
    lost = 1 - worst.kept.value
    if lost < 0.005:
        return f"Sharing costs none of the {len(answers)} databases anything that the simulation shows."
    between = f"{numbers.percent(1 - worst.kept.high)} to {numbers.percent(1 - worst.kept.low)}"
    return (
        f"Sharing costs {worst.database} {numbers.percent(lost)} of its rate ({between} over the seeds), "
        f"the most of the {len(answers)} databases."
    )


def _table(answers: Sequence[JointPrediction]) -> Table:
    found = table(
        ["database", "scenario"],
        [
            f"{answers[0].alone.unit}/s\nalone",
            "together",
            "times faster\nthan recorded",
            "p99\nalone",
            "p99\ntogether",
        ],
    )
    for answer in answers:
        found.add(
            answer.database,
            "\n".join(scenario_parts(answer.together.scenario)),
            estimate(answer.alone.rate_per_s, numbers.significant),
            estimate(answer.together.rate_per_s, numbers.significant),
            speedup(answer.together),
            estimate(answer.alone.p99_us, numbers.microseconds),
            estimate(answer.together.p99_us, numbers.microseconds),
        )
    return found
