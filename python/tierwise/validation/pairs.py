"""Pairs of predicted and measured figures: each recording predicts all placements of its case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.model.progress import ProgressCallback
from tierwise.predict import Estimate, ModelError, Scenario
from tierwise.predict.model_error import path_between
from tierwise.predict.replayer import Distribute
from tierwise.validation.accuracy import Figure, Pair, Reproduction
from tierwise.validation.answers import Answer, Answered, OpenedRecording, read_answers, unanswered
from tierwise.validation.rows import Row, read_rows
from tierwise.validation.runner import OWN_PROFILE, SPEC_FILE, Started, read_plan
from tierwise.validation.session import Place
from tierwise.validation.spec import ValidationSpec
from tierwise.validation.truth import Truth, truth_of

_FEWEST_REQUESTS = 100
"""Minimum requests of a role in a run for a comparison of their number."""

ErrorOf = Callable[[str], ModelError]
"""Family -> the model error that its predictions may use."""


@dataclass(frozen=True)
class RoundData:
    """One round: its rows, and the folder of its recordings."""

    spec: ValidationSpec
    started: Started
    folder: Path
    rows: Sequence[Row]
    truth: Truth

    @classmethod
    def read(cls, folder: Path) -> RoundData:
        """Read the round in a folder.

        Raises:
            TierwiseError: if it holds no round, or a damaged one.
        """
        started = read_plan(folder)
        if started is None:
            raise TierwiseError(f"{folder} holds no validation", "run tierwise validate first")
        text = read_text(folder / SPEC_FILE, "name the folder of a validation", in_folder=True)
        spec = ValidationSpec.model_validate_json(text)
        rows = read_rows(folder)
        return cls(spec, started, folder, rows, truth_of(rows))

    @property
    def recorded(self) -> list[Row]:
        """Recorded runs that count."""
        return [row for row in self.rows if row.kind == "recorded" and row.status == "ok"]

    @property
    def too_short(self) -> set[str]:
        """Cases with laps shorter than the declared minimum, which a disturbance could dominate."""
        least_s = self.spec.shortest_lap_s
        return {row.case for row in self.rows if row.laps and row.elapsed_s and row.elapsed_s < least_s}

    def scenario_of(self, row: Row, placement: str) -> Scenario:
        """The scenario of a placement for the recording of a run."""
        own = self.spec.kind_of(placement) == "real"
        if own and placement == row.placement:
            return Scenario()
        named = self.spec.scenario_of(placement, str(self.folder / OWN_PROFILE))
        return Scenario(placement=named, emulated=not own)


def rounds_in(folder: Path) -> list[RoundData]:
    """The rounds in a folder and in its subfolders.

    Raises:
        TierwiseError: if there is none.
    """
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.exists() else []
    found = [one for one in (folder, *inside) if read_plan(one) is not None]
    if not found:
        raise TierwiseError(f"{folder} holds no validation", "run tierwise validate first")
    return [RoundData.read(one) for one in found]


class ComparedRound:
    """The recordings of a round; each is opened once, and predicts without and with calibrated error."""

    def __init__(
        self, round: RoundData, without: Sequence[str] = (), distribute: Distribute | None = None
    ) -> None:
        """Open nothing yet. Kept answers replace missing recordings.

        Args:
            round: round of the recordings.
            without: mechanisms to switch off.
            distribute: moves the simulations to a cluster, if given.
        """
        self._round, self._without, self._distribute = round, without, distribute
        self._kept = {one.key: one for one in read_answers(round.folder)}
        self._opened: dict[str, OpenedRecording | Answered] = {}

    def ask(self, row: Row, error: ModelError) -> Answered:
        """Answers of the recording of a run, with intervals that include the error."""
        if row.run_id not in self._opened:
            self._opened[row.run_id] = self._open(row)
        opened = self._opened[row.run_id]
        if isinstance(opened, Answered):
            return opened
        placements = sorted({place for case, place in self._round.truth.figures if case == row.case})
        try:
            scenarios = {place: self._round.scenario_of(row, place) for place in placements}
            return opened.ask(scenarios, error)
        except TierwiseError as problem:
            return unanswered(row, str(problem))

    def _open(self, row: Row) -> OpenedRecording | Answered:
        path = Place(self._round.folder).recording(row.run_id)
        key = (row.case, row.placement, row.block, row.round)
        if not path.exists() and key in self._kept:
            return self._kept[key]
        try:
            return OpenedRecording(path, row, self._without, self._distribute)
        except TierwiseError as problem:
            return unanswered(row, str(problem))


def compare(
    asked: ComparedRound, round: RoundData, error_of: ErrorOf, progress: ProgressCallback
) -> list[Answered]:
    """Compare every recording of a round with its measurements.

    Args:
        asked: recordings of the round.
        round: to compare with.
        error_of: error of the model by family, included in the intervals.
        progress: called for each recording.
    """
    answers = []
    for row in round.recorded:
        progress(row.run_id)
        answers.append(asked.ask(row, error_of(row.family)))
    return answers


def reproductions_of(answers: Sequence[Answered]) -> list[Reproduction]:
    """Reproduction error of each recording."""
    return [
        Reproduction(
            case=one.case,
            engine=one.engine,
            recorded=one.recorded,
            block=one.block,
            round=one.round,
            error=one.error,
            latency_error=one.latency_error,
            problem=one.problem,
        )
        for one in answers
    ]


def pairs_of(answers: Sequence[Answered], round: RoundData) -> Iterator[Pair]:
    """Answers paired with measurements."""
    recorded = {(row.case, row.placement, row.block): row for row in round.recorded}
    for one in answers:
        row = recorded.get((one.case, one.recorded, one.block))
        if row is None:
            continue
        for (case, placement), figures in round.truth.figures.items():
            if case != one.case:
                continue
            answer = one.answers.get(placement, Answer(refused=one.problem or "no answer was kept"))
            yield _pair(one, answer, row, placement, figures, round)


def _pair(
    one: Answered, answer: Answer, row: Row, placement: str, figures: list[float], round: RoundData
) -> Pair:
    units = _units(one, row)
    return Pair(
        case=row.case,
        family=row.family,
        engine=one.engine,
        clients=row.clients,
        recorded=row.placement,
        placement=placement,
        path=path_between(row.storage, round.spec.kind_of(placement)),
        block=row.block,
        round=row.round,
        model=one.model,
        unit="s" if row.laps else "transactions/s",
        measured=figures,
        predicted=answer.elapsed_s if row.laps else _times(answer.rate_per_s, units),
        speedup=answer.speedup,
        refused=answer.refused,
        latency={} if row.laps else _latency(answer, round.truth.rows[row.case, placement]),
        parts=_parts(answer, round.truth.rows[row.case, placement], units),
    )


def _units(one: Answered, row: Row) -> float:
    """Transactions per unit that predictions count, if the recording shows only requests."""
    if one.unit == "transactions" or row.rate_per_s is None or not one.rate_per_s:
        return 1.0
    return row.rate_per_s / one.rate_per_s


def _times(estimate: Estimate | None, factor: float) -> Estimate | None:
    if estimate is None:
        return None
    return Estimate(value=estimate.value * factor, low=estimate.low * factor, high=estimate.high * factor)


def _latency(answer: Answer, rows: Sequence[Row]) -> dict[str, Figure]:
    """Predicted percentiles, each with the median over runs of the measured one."""
    found = {}
    for name, predicted in answer.latency_us.items():
        values = [row.latency_us[f"{name}_us"] for row in rows if f"{name}_us" in row.latency_us]
        if values:
            found[name] = Figure(predicted=predicted, measured=median(values))
    return found


def _parts(answer: Answer, rows: Sequence[Row], units: float) -> dict[str, tuple[float, float]]:
    """Components of the prediction, per transaction of a mix, or for all laps together."""
    laps = rows[0].laps
    estimate = answer.elapsed_s if laps else answer.rate_per_s
    if estimate is None:
        return {}
    each = estimate.value if laps else 1 / (estimate.value * units)
    predicted = {
        "commits per flush": answer.commits_per_flush and answer.commits_per_flush * (1 if laps else units),
        "CPU": None if answer.busy_cores is None else answer.busy_cores * each,
        "share of log wait": answer.log_wait_share,
    }
    measured: dict[str, list[float | None]] = {
        "commits per flush": [row.commits_per_flush for row in rows],
        "CPU": [_per_unit(row, row.cpu_s) for row in rows],
        "share of log wait": [row.log_wait_share for row in rows],
    }
    for role, counted in answer.io_per_s.items():
        for name, rate in counted.items():
            label = f"{role}: {name.replace('_', ' ')}"
            predicted[label] = rate * each
            measured[label] = [_per_unit(row, _enough(row, role, name)) for row in rows]
    return dict(_compared(predicted, measured))


def _compared(
    predicted: Mapping[str, float | None], measured: Mapping[str, Sequence[float | None]]
) -> Iterator[tuple[str, tuple[float, float]]]:
    for name, value in predicted.items():
        values = [one for one in measured[name] if one is not None]
        if value is not None and values:
            yield name, (value, median(values))


def _enough(row: Row, role: str, name: str) -> float | None:
    """A count of a role's requests or bytes, if there were enough requests to compare."""
    if role not in row.io:
        return None
    io = row.io[role]
    requests = {"read_bytes": io.reads, "written_bytes": io.writes}.get(name, getattr(io, name, 0))
    return float(getattr(io, name)) if requests >= _FEWEST_REQUESTS else None


def _per_unit(row: Row, total: float | None) -> float | None:
    if total is None:
        return None
    return total if row.laps else total / row.transactions if row.transactions else None
