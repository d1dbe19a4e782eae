"""Answers of recordings for judging: small enough to keep where recordings are too large."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tierwise.lab.validation.slot_rows import RecordingVerdict, SlotRow
from tierwise.lab.validation.validation_round import model_version
from tierwise.model.output_files import write_file
from tierwise.predict import Estimate, ModelError, Prediction, Predictor, Scenario
from tierwise.predict.estimates import inverse_estimate
from tierwise.predict.replayer import Replayer, SimulationDistributor
from tierwise.predict.usability import judge_usability
from tierwise.recording import Recording
from tierwise.results.measurements import StrictModel
from tierwise.results.result_files import read_records

ANSWERS_FILE = "predictions.jsonl"
_PERCENTILES = ("p50", "p95", "p99")


class PlacementAnswer(StrictModel):
    """A recording's answer for one placement."""

    rate_per_s: Estimate | None = None
    """Of a job that is done once: jobs a second."""
    bound_per_s: float | None = None
    refused: str | None = None
    gained: float | None = None
    """Share of the sessions' time on processors beyond that of the recorded run."""
    latency_us: dict[str, Estimate] = {}


class RecordingAnswers(RecordingVerdict):
    """One recording and its answer for each placement of its case."""

    model: str
    """Commit of the model that answered."""
    unit: str = "transactions"
    """Of the recorded rate."""
    answers: dict[str, PlacementAnswer] = {}
    """Answers by the validation's name of the placement."""


class OpenedRecording:
    """A recording that keeps its replays while it is judged: first without, then with calibrated error."""

    def __init__(
        self,
        path: Path,
        row: SlotRow,
        without: Sequence[str] = (),
        distribute: SimulationDistributor | None = None,
    ) -> None:
        """Open it, with the mechanisms in ``without`` switched off; ``distribute`` moves its simulations."""
        self._row = row
        self._recording = Recording.open(path)
        # Emulated disks are new when a case begins.
        self._replayer = Replayer.open(path, fresh=True, without=without)
        if distribute is not None:
            distribute(self._replayer, path, without)
        self._replayer.remember()
        self._without = without

    def ask(self, scenarios: Mapping[str, Scenario], error: ModelError) -> RecordingAnswers:
        """Answer each scenario, with intervals that include the calibrated error."""
        predictor = Predictor(
            self._recording.about, self._recording.warnings, self._replayer, model_error=error
        )
        predictor.select_from(self._recording, partial(Replayer.open, fresh=True, without=self._without))
        answers = predictor.predict(list(scenarios.values()))
        verdict = judge_usability(predictor)
        return recording_without_answers(self._row, None).changed(
            unit=predictor.run.unit,
            rate_per_s=predictor.run.rate_per_s,
            error=predictor.run.error,
            usable=verdict.usable,
            reasons=verdict.reasons,
            answers=dict(zip(scenarios, map(_answer, answers), strict=True)),
        )


def recording_without_answers(row: SlotRow, problem: str | None) -> RecordingAnswers:
    """A recording without answers, and the reason."""
    return RecordingAnswers(
        case=row.case,
        recorded=row.placement,
        block=row.block,
        round=row.round,
        model=model_version(),
        problem=problem,
    )


def read_recording_answers(folder: Path) -> list[RecordingAnswers]:
    """The kept answers of a round; empty if none were kept."""
    file = folder / ANSWERS_FILE
    return (
        read_records(RecordingAnswers, file, "name the folder of a validation")
        if os.path.lexists(file)
        else []
    )


def write_recording_answers(folder: Path, answers: Iterable[RecordingAnswers]) -> None:
    """Keep the answers of a round beside its rows."""
    lines = [answer.model_dump_json(exclude_defaults=True) for answer in answers]
    write_file(folder / ANSWERS_FILE, "".join(f"{line}\n" for line in lines))


def _answer(prediction: Prediction) -> PlacementAnswer:
    if prediction.refused is not None:
        return PlacementAnswer(refused=prediction.refused.message)
    rate, elapsed = prediction.rate_per_s, prediction.elapsed_s
    bound = prediction.bound.rate_per_s if prediction.bound else None
    if prediction.once and elapsed is not None and rate is not None:
        bound = bound and bound / (rate.value * elapsed.value)
        rate = inverse_estimate(elapsed)
    latency = {name: getattr(prediction, f"{name}_us") for name in _PERCENTILES}
    return PlacementAnswer(
        rate_per_s=rate,
        bound_per_s=bound,
        gained=prediction.gained_computing,
        latency_us={name: estimate for name, estimate in latency.items() if estimate is not None},
    )
