"""Answers of recordings for judging: small enough to keep where recordings are too large."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.model.output_files import write_file
from tierwise.model.roles import Role
from tierwise.predict import Estimate, ModelError, Prediction, Predictor, Scenario
from tierwise.predict.replayer import Distribute, Replayer
from tierwise.recording import Recording
from tierwise.results.measurements import Record
from tierwise.validation.rows import REST, Round, Row
from tierwise.validation.runner import model_name

ANSWERS_FILE = "predictions.jsonl"
_PERCENTILES = ("p50", "p95", "p99")


class Answer(Record):
    """A recording's answer for one placement."""

    rate_per_s: Estimate | None = None
    elapsed_s: Estimate | None = None
    speedup: float | None = None
    refused: str | None = None
    latency_us: dict[str, Estimate] = {}
    commits_per_flush: float | None = None
    busy_cores: float | None = None
    """Mean number of busy cores."""
    log_wait_share: float | None = None
    io_per_s: dict[str, dict[str, float]] = {}
    """``log`` and ``rest``: requests and bytes a second, by the names used in rows."""


class Answered(Record):
    """One recording and its answer for each placement of its case."""

    case: str
    recorded: str
    block: int
    round: Round
    model: str
    """Commit of the model that answered."""
    engine: str = ""
    unit: str = "transactions"
    rate_per_s: float | None = None
    """Recorded rate, in ``unit``."""
    error: float | None = None
    latency_error: float | None = None
    problem: str | None = None
    answers: dict[str, Answer] = {}
    """Answers by the validation's name of the placement."""

    @property
    def key(self) -> tuple[str, str, int, Round]:
        """Key of the recorded run."""
        return self.case, self.recorded, self.block, self.round


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
        # Emulated disks are new when a run begins.
        self._replayer = Replayer.open(path, fresh=True, without=without)
        if distribute is not None:
            distribute(self._replayer, path, without)
        self._replayer.remember()

    def ask(self, scenarios: Mapping[str, Scenario], error: ModelError) -> Answered:
        """Answer each scenario, with intervals that include the calibrated error."""
        predictor = Predictor(
            self._recording.about, self._recording.warnings, self._replayer, model_error=error
        )
        answers = predictor.predict(list(scenarios.values()))
        return self._answered(
            engine=predictor.run.engine,
            unit=predictor.run.unit,
            rate_per_s=predictor.run.rate_per_s,
            error=predictor.run.error,
            latency_error=predictor.run.latency_error,
            answers={
                placement: _answer(prediction, predictor.run.cores)
                for placement, prediction in zip(scenarios, answers, strict=True)
            },
        )

    def _answered(self, **found: object) -> Answered:
        return unanswered(self._row, None).model_copy(update=found)


def unanswered(row: Row, problem: str | None) -> Answered:
    """A recording without answers, and the reason."""
    return Answered(
        case=row.case,
        recorded=row.placement,
        block=row.block,
        round=row.round,
        model=model_name(),
        engine=row.engine,
        problem=problem,
    )


def read_answers(folder: Path) -> list[Answered]:
    """The kept answers of a round; empty if none were kept.

    Raises:
        TierwiseError: if the file is malformed.
    """
    file = folder / ANSWERS_FILE
    if not os.path.lexists(file):
        return []
    text = read_text(file, "name the folder of a validation", in_folder=True)
    try:
        return [Answered.model_validate_json(line) for line in text.splitlines()]
    except ValueError as error:
        raise TierwiseError(f"{file}: {str(error).splitlines()[0]}", "remove it and judge again") from None


def write_answers(folder: Path, answers: Iterable[Answered]) -> None:
    """Keep the answers of a round beside its rows."""
    lines = [one.model_dump_json(exclude_defaults=True) for one in answers]
    write_file(folder / ANSWERS_FILE, "".join(f"{line}\n" for line in lines))


def _answer(prediction: Prediction, cores: int) -> Answer:
    if prediction.refused is not None:
        return Answer(refused=prediction.refused.message)
    latency = {name: getattr(prediction, f"{name}_us") for name in _PERCENTILES}
    shares, busy = prediction.shares, prediction.cpu_busy_share
    return Answer(
        rate_per_s=prediction.rate_per_s,
        elapsed_s=prediction.elapsed_s,
        speedup=prediction.speedup.value if prediction.speedup else None,
        latency_us={name: estimate for name, estimate in latency.items() if estimate is not None},
        commits_per_flush=prediction.commits_per_flush or None,
        busy_cores=None if busy is None else busy * (prediction.scenario.cores or cores),
        log_wait_share=shares.get("log_device", 0.0) + shares.get("log_queue", 0.0) if shares else None,
        io_per_s={"log": _io(prediction, [Role.LOG]), REST: _io(prediction, [*set(Role) - {Role.LOG}])},
    )


def _io(prediction: Prediction, roles: Sequence[Role]) -> dict[str, float]:
    loads = [load for role, load in prediction.io.items() if role in roles]
    return {
        "reads": sum(load.reads_per_s for load in loads),
        "writes": sum(load.writes_per_s for load in loads),
        "flushes": sum(load.flushes_per_s for load in loads),
        "read_bytes": sum(load.read_bytes_per_s for load in loads),
        "written_bytes": sum(load.written_bytes_per_s for load in loads),
    }
