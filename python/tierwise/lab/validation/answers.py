"""Answers of recordings for judging: small enough to keep where recordings are too large."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tierwise.lab.validation.rows import RecordingVerdict, Row
from tierwise.lab.validation.runner import model_name
from tierwise.model.output_files import write_file
from tierwise.predict import Estimate, ModelError, Prediction, Predictor, Scenario
from tierwise.predict.replayer import Distribute, Replayer
from tierwise.predict.usability import usability
from tierwise.recording import Recording
from tierwise.results.files import read_records
from tierwise.results.measurements import Record

ANSWERS_FILE = "predictions.jsonl"
_PERCENTILES = ("p50", "p95", "p99")


class Answer(Record):
    """A recording's answer for one placement."""

    rate_per_s: Estimate | None = None
    """Of a job that is done once: jobs a second."""
    bound_per_s: float | None = None
    refused: str | None = None
    gained: float | None = None
    """Share of the sessions' time on processors beyond that of the recorded run."""
    latency_us: dict[str, Estimate] = {}


class Answered(RecordingVerdict):
    """One recording and its answer for each placement of its case."""

    model: str
    """Commit of the model that answered."""
    unit: str = "transactions"
    """Of the recorded rate."""
    answers: dict[str, Answer] = {}
    """Answers by the validation's name of the placement."""


class OpenedRecording:
    """A recording that keeps its replays while it is judged: first without, then with calibrated error."""

    def __init__(
        self, path: Path, row: Row, without: Sequence[str] = (), distribute: Distribute | None = None
    ) -> None:
        """Open it, with the mechanisms in ``without`` switched off; ``distribute`` moves its simulations.

        Raises:
            TierwiseError: no recording, a damaged or newer one, or one without work in it.
        """
        self._row = row
        self._recording = Recording.open(path)
        # Emulated disks are new when a case begins.
        self._replayer = Replayer.open(path, fresh=True, without=without)
        if distribute is not None:
            distribute(self._replayer, path, without)
        self._replayer.remember()
        self._without = without

    def ask(self, scenarios: Mapping[str, Scenario], error: ModelError) -> Answered:
        """Answer each scenario, with intervals that include the calibrated error."""
        predictor = Predictor(
            self._recording.about, self._recording.warnings, self._replayer, model_error=error
        )
        predictor.select_from(self._recording, partial(Replayer.open, fresh=True, without=self._without))
        answers = predictor.predict(list(scenarios.values()))
        verdict = usability(predictor)
        return unanswered(self._row, None).changed(
            unit=predictor.run.unit,
            rate_per_s=predictor.run.rate_per_s,
            error=predictor.run.error,
            usable=verdict.usable,
            reasons=verdict.reasons,
            answers=dict(zip(scenarios, map(_answer, answers), strict=True)),
        )


def unanswered(row: Row, problem: str | None) -> Answered:
    """A recording without answers, and the reason."""
    return Answered(
        case=row.case,
        recorded=row.placement,
        block=row.block,
        round=row.round,
        model=model_name(),
        problem=problem,
    )


def read_answers(folder: Path) -> list[Answered]:
    """The kept answers of a round; empty if none were kept."""
    file = folder / ANSWERS_FILE
    return read_records(Answered, file, "name the folder of a validation") if os.path.lexists(file) else []


def write_answers(folder: Path, answers: Iterable[Answered]) -> None:
    """Keep the answers of a round beside its rows."""
    lines = [answer.model_dump_json(exclude_defaults=True) for answer in answers]
    write_file(folder / ANSWERS_FILE, "".join(f"{line}\n" for line in lines))


def _answer(prediction: Prediction) -> Answer:
    if prediction.refused is not None:
        return Answer(refused=prediction.refused.message)
    rate, elapsed = prediction.rate_per_s, prediction.elapsed_s
    bound = prediction.bound.rate_per_s if prediction.bound else None
    if prediction.once and elapsed is not None and rate is not None:
        bound = bound and bound / (rate.value * elapsed.value)
        rate = Estimate(value=1 / elapsed.value, low=1 / elapsed.high, high=1 / elapsed.low)
    latency = {name: getattr(prediction, f"{name}_us") for name in _PERCENTILES}
    return Answer(
        rate_per_s=rate,
        bound_per_s=bound,
        gained=prediction.gained_computing,
        latency_us={name: estimate for name, estimate in latency.items() if estimate is not None},
    )
