"""Judges rounds: pairs predictions with what slots measured, and learns the model's error.

It compares twice, so that the interval of every prediction includes the error of other families of clients.
Publishes the rows behind docs/evidence/accuracy.md, and the smallest of the recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from statistics import median

from tierwise.advise import PlacementCosts
from tierwise.lab.validation import measured_rates
from tierwise.lab.validation.calibration import calibrate_model_error, calibrate_without_family
from tierwise.lab.validation.measured_rates import BlockEstimate
from tierwise.lab.validation.prediction_accuracy import (
    JudgedRecording,
    LatencyPercentile,
    PredictionAccuracy,
    PredictionPair,
)
from tierwise.lab.validation.recording_answers import (
    ANSWERS_FILE,
    OpenedRecording,
    PlacementAnswer,
    RecordingAnswers,
    read_recording_answers,
    recording_without_answers,
    write_recording_answers,
)
from tierwise.lab.validation.slot_rows import (
    ROWS_FILE,
    RecordingKey,
    SlotRow,
    read_slot_rows,
    recording_folder_of,
)
from tierwise.lab.validation.validation_case import all_case_specs
from tierwise.lab.validation.validation_round import (
    OWN_PROFILE,
    PLAN_FILE,
    SPEC_FILE,
    StartedRound,
    read_round_plan,
)
from tierwise.lab.validation.validation_spec import BUFFER, OWN, CaseSpec, ValidationSpec
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.executor import ProgressCallback
from tierwise.model.input_files import read_text
from tierwise.model.names import group_by_key
from tierwise.model.output_files import write_file
from tierwise.model.placement import Role
from tierwise.predict import Estimate, ModelError, Scenario
from tierwise.predict.model_error import storage_transition
from tierwise.predict.named_devices import resolve_device
from tierwise.predict.replayer import SimulationDistributor
from tierwise.recording import ABOUT_FILE, Recording, redact_recording, remove_recording

ErrorOf = Callable[[str], ModelError]
"""Family -> the model error that its predictions may use."""


@dataclass(frozen=True)
class RoundData:
    """One round: its rows, and the folder of its recordings."""

    spec: ValidationSpec
    started: StartedRound
    folder: Path
    rows: Sequence[SlotRow]

    @classmethod
    def read(cls, folder: Path) -> RoundData:
        """Read the round in a folder."""
        started = read_round_plan(folder)
        if started is None:
            raise TierwiseError(f"{folder} holds no validation", "run tierwise validate first")
        text = read_text(folder / SPEC_FILE, "name the folder of a validation", in_folder=True)
        return cls(ValidationSpec.model_validate_json(text), started, folder, read_slot_rows(folder))

    @cached_property
    def recorded(self) -> dict[RecordingKey, SlotRow]:
        """Recorded slots that count, by the key of their recording."""
        return {row.key: row for row in self.rows if row.kind == "recorded" and row.status == "ok"}

    @cached_property
    def _by_case(self) -> dict[str, list[SlotRow]]:
        return group_by_key((row.case, row) for row in self.rows)

    @cached_property
    def cases(self) -> dict[str, CaseSpec]:
        """Measured cases, by name."""
        return {name: case for name, case in all_case_specs(self.spec).items() if name in self._by_case}

    def slots(self, case: str) -> list[SlotRow]:
        """Slots of a case."""
        return self._by_case.get(case, [])

    def blocks(self, case: str) -> measured_rates.Blocks:
        """Complete blocks of a case."""
        return measured_rates.complete_blocks(self.slots(case), self.placements(case))

    def placements(self, case: str) -> list[str]:
        """Placements of a case that were measured."""
        return list(dict.fromkeys(row.placement for row in self.slots(case) if row.kind == "slot"))

    def beside_per_s(self, row: SlotRow) -> float | None:
        """Rate beside a recording, without it."""
        return measured_rates.rate_beside_recording(self.slots(row.case), row.placement, row.block)

    def from_disk(self, placement: str) -> bool:
        """Whether all files of a placement, but for roles named, are on a disk that turns."""
        device = self.spec.devices[self.spec.placements[placement]["all"]]
        return device != OWN and resolve_device(device).profile.kind == "hdd"

    @cached_property
    def emulated_flushes(self) -> bool:
        """Whether disks without a volatile cache were sent flushes, as in the first rounds."""
        devices = {name for name in self.spec.devices.values() if name != OWN}
        cached = {profile.text for name in devices if (profile := resolve_device(name).profile).write_cache}
        paths = (recording_folder_of(self.folder, row) for row in self.recorded.values())
        return any(
            device.write_cache
            for path in paths
            if path.exists()
            for device in Recording.open(path).about.devices
            if device.profile and device.profile not in cached
        )

    def scenario_of(self, row: SlotRow, placement: str) -> Scenario:
        """The scenario of a placement for the recording of a slot."""
        own = self.spec.kind_of(placement) == "real"
        if own and placement == row.placement:
            return Scenario()
        named = self.spec.scenario_of(placement, str(self.folder / OWN_PROFILE))
        selected = named.pop(Role.SELECTED, None)
        if selected is not None:
            named |= dict.fromkeys(self.cases[row.case].selected, selected)
        return Scenario(
            placement=named,
            emulated=not own,
            emulated_flushes=self.emulated_flushes,
            settings=self.spec.settings_of(placement),
            memory_bytes=self.spec.memory_bytes_of(placement),
            buffer_bytes=self.spec.memory_bytes_of(placement, BUFFER),
        )

    def price(self, row: SlotRow, placement: str) -> float | None:
        """Price of a placement a month, by the partitions' sizes; nothing for the recorded one."""
        if placement == row.placement:
            return 0.0
        roles, sizes = self.spec.devices_of(placement), {**self.spec.sizes, **self.cases[row.case].sizes}
        devices = {Role(role): self.spec.devices[roles.get(role, roles["all"])] for role in sizes}
        if OWN in devices.values():
            return None
        try:
            return PlacementCosts({Role(role): size for role, size in sizes.items()}).cost_per_month(devices)
        except TierwiseError:
            return None


def rounds_in(folder: Path) -> list[RoundData]:
    """The rounds in a folder and in its subfolders."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.exists() else []
    folders = [candidate for candidate in (folder, *inside) if read_round_plan(candidate) is not None]
    if not folders:
        raise TierwiseError(f"{folder} holds no validation", "run tierwise validate first")
    return [RoundData.read(round_folder) for round_folder in folders]


def judge_rounds(
    rounds: Sequence[RoundData],
    progress: ProgressCallback,
    without: Sequence[str] = (),
    distribute: SimulationDistributor | None = None,
) -> tuple[PredictionAccuracy, ModelError]:
    """Compare predictions with measurements, and keep the predictions beside the rows.

    The intervals of a family's predictions include the error calibrated from all other families, as for
    a client that was never measured. Beside no building round, they include the error that answers
    include here. The returned model error is calibrated from all families; a prospective round
    calibrates nothing.

    Args:
        without: mechanisms of the model to switch off; these predictions are not kept.
        distribute: moves the simulations to a cluster, if given.
    """
    day = date.today().isoformat()
    asked = [_OpenRecordings(round_data, without, distribute) for round_data in rounds]
    bare: list[PredictionPair] = []
    for judged in asked:
        bare += _pairs(judged.answers(lambda _: ModelError(), progress), judged.round)
    seen = [pair for pair in bare if pair.round == "building"]
    everywhere = None if seen else ModelError.read()
    known = {
        family: everywhere or calibrate_without_family(seen, family, day)
        for family in {pair.family for pair in bare}
    }
    recordings: list[JudgedRecording] = []
    pairs: list[PredictionPair] = []
    for judged in asked:
        answers = judged.answers(lambda family: known.get(family, ModelError()), progress)
        if not without:
            write_recording_answers(judged.round.folder, answers)
        recordings += _recordings(answers, judged.round)
        pairs += _pairs(answers, judged.round)
    accuracy = PredictionAccuracy(
        day=day,
        slots=sum(len(round_data.rows) for round_data in rounds),
        recordings=recordings,
        pairs=pairs,
        rates={
            name: _rates([round_data for round_data in rounds if round_data.started.round == name])
            for name in dict.fromkeys(round_data.started.round for round_data in rounds)
        },
        agreement=agreement_between_rounds(rounds),
        left_out=_absent(rounds),
        idle_poll_ns=sorted({poll for each in rounds if (poll := each.started.idle_poll_ns) is not None}),
    )
    return accuracy, calibrate_model_error([pair for pair in bare if pair.round == "building"], day)


def agreement_between_rounds(rounds: Sequence[RoundData]) -> tuple[int, int] | None:
    """Of the ratios that two rounds measured: how many agree within their intervals, and of how many."""
    known: dict[tuple[str, str, str], list[BlockEstimate]] = {}
    for round_data in rounds:
        for case, spec in round_data.cases.items():
            blocks, placements = round_data.blocks(case), round_data.placements(case)
            for reference in set(spec.recorded) & set(placements):
                for placement in placements:
                    ratio = (
                        measured_rates.placement_ratio(blocks, placement, reference)
                        if reference != placement
                        else None
                    )
                    if ratio is not None:
                        known.setdefault((case, reference, placement), []).append(ratio)
    both = [ratios[:2] for ratios in known.values() if len(ratios) > 1]
    agree = sum(a.low <= b.high and b.low <= a.high for a, b in both)
    return (agree, len(both)) if both else None


class _OpenRecordings:
    """The recordings of a round; each is opened once, and predicts without and with calibrated error."""

    def __init__(
        self, round: RoundData, without: Sequence[str], distribute: SimulationDistributor | None
    ) -> None:
        """Open nothing yet. Kept answers replace missing recordings."""
        self.round, self._without, self._distribute = round, without, distribute
        self._kept = {answer.key: answer for answer in read_recording_answers(round.folder)}
        self._opened: dict[str, OpenedRecording | RecordingAnswers] = {}

    def answers(self, error_of: ErrorOf, progress: ProgressCallback) -> list[RecordingAnswers]:
        """Answers of every recording, with intervals that include the error of the model by family."""
        answered = []
        for row in self.round.recorded.values():
            progress(f"predicting: {row.run_id}")
            answered.append(self._ask(row, error_of(row.family)))
        return answered

    def _ask(self, row: SlotRow, error: ModelError) -> RecordingAnswers:
        if row.run_id not in self._opened:
            self._opened[row.run_id] = self._open(row)
        opened = self._opened[row.run_id]
        if isinstance(opened, RecordingAnswers):
            return opened
        try:
            scenarios = {
                place: self.round.scenario_of(row, place) for place in self.round.placements(row.case)
            }
            return opened.ask(scenarios, error)
        except TierwiseError as problem:
            return recording_without_answers(row, str(problem))

    def _open(self, row: SlotRow) -> OpenedRecording | RecordingAnswers:
        path = recording_folder_of(self.round.folder, row)
        if not path.exists() and row.key in self._kept:
            return self._kept[row.key]
        try:
            return OpenedRecording(path, row, self._without, self._distribute)
        except TierwiseError as problem:
            return recording_without_answers(row, str(problem))


def _pairs(answers: Sequence[RecordingAnswers], round: RoundData) -> Iterator[PredictionPair]:
    """Answers paired with measurements."""
    for answered in answers:
        row = round.recorded.get(answered.key)
        if row is None or (beside := round.beside_per_s(row)) is None:
            continue
        blocks = round.blocks(row.case)
        for placement in round.placements(row.case):
            ratio = measured_rates.placement_ratio(blocks, placement, row.placement)
            answer = answered.answers.get(
                placement, PlacementAnswer(refused=answered.problem or "no answer was kept")
            )
            if ratio is not None:
                yield _pair(answered, answer, row, round, placement=placement, ratio=ratio, beside=beside)


def _pair(
    answered: RecordingAnswers,
    answer: PlacementAnswer,
    row: SlotRow,
    round: RoundData,
    *,
    placement: str,
    ratio: BlockEstimate,
    beside: float,
) -> PredictionPair:
    units = 1.0
    if answered.unit != "transactions" and row.rate_per_s and answered.rate_per_s:
        units = row.rate_per_s / answered.rate_per_s  # transactions for each request that it shows
    predicted = _times(answer.rate_per_s, units)
    return PredictionPair(
        **row.model_dump(include={"case", "family", "engine", "clients", "block", "round", "laps"}),
        load=round.cases[row.case].load,
        recorded=row.placement,
        placement=placement,
        path=storage_transition(row.storage, round.spec.kind_of(placement)),
        from_disk=round.from_disk(row.placement),
        model=answered.model,
        measured=ratio.times(beside),
        ratio=ratio,
        predicted=predicted,
        speedup=None if predicted is None else predicted.value / beside,
        gained=answer.gained,
        bound_per_s=answer.bound_per_s and answer.bound_per_s * units,
        refused=answer.refused,
        latency={} if row.laps else _latency(answer, round.slots(row.case), placement),
        price=round.price(row, placement),
    )


def _times(estimate: Estimate | None, factor: float) -> Estimate | None:
    if estimate is None:
        return None
    return Estimate(value=estimate.value * factor, low=estimate.low * factor, high=estimate.high * factor)


def _latency(
    answer: PlacementAnswer, rows: Sequence[SlotRow], placement: str
) -> dict[str, LatencyPercentile]:
    """Predicted percentiles, each with the median over slots of the measured one."""
    figures = {}
    latencies = [row.latency_us for row in rows if (row.kind, row.placement) == ("slot", placement)]
    for name, predicted in answer.latency_us.items():
        values = [latency_us[f"{name}_us"] for latency_us in latencies if f"{name}_us" in latency_us]
        if values:
            figures[name] = LatencyPercentile(predicted=predicted, measured=median(values))
    return figures


def _recordings(answers: Sequence[RecordingAnswers], round: RoundData) -> Iterator[JudgedRecording]:
    for answer in answers:
        row = round.recorded[answer.key]
        same = answer.model_dump(include=JudgedRecording.model_fields.keys() - {"rate_per_s"})
        yield JudgedRecording(**same, rate_per_s=row.rate_per_s, beside_per_s=round.beside_per_s(row))


def _rates(rounds: Sequence[RoundData]) -> dict[str, dict[str, BlockEstimate]]:
    """Measured rates by case and placement; of a case in several rounds, those of the last."""
    return {
        case: {
            placement: rate
            for placement in round_data.placements(case)
            if (rate := measured_rates.placement_rate(round_data.blocks(case), placement)) is not None
        }
        for round_data in rounds
        for case in round_data.cases
    }


def _absent(rounds: Sequence[RoundData]) -> dict[str, str]:
    """Cases that no round of a kind compares, and everything else left out, each with the reason."""
    compared = {
        (round_data.started.round, case)
        for round_data in rounds
        for case in round_data.cases
        if len(round_data.blocks(case)) > 1
    }
    reasons: dict[str, str] = {}
    for round_data in rounds:
        known, name = round_data.started.left_out, round_data.started.round
        reasons |= {f"{name}: {what}": why for what, why in known.items()}
        for case in round_data.started.cases:
            if case not in known and (name, case) not in compared:
                failed = [row.problems[0] for row in round_data.slots(case) if row.status == "failed"]
                reasons[f"{name}: {case}"] = failed[-1] if failed else "fewer than two blocks were measured"
    return reasons


_FIX = "name the folder of a validation"
_MOST_BYTES = 1 << 28
_FILES = (PLAN_FILE, SPEC_FILE, ROWS_FILE, ANSWERS_FILE, OWN_PROFILE)


def publish_rounds(rounds: Sequence[RoundData], folder: Path, recordings_bytes: int = 0) -> list[Path]:
    """Copy each round's input of judging, without paths, to a folder named by the round.

    The smallest recordings are redacted and copied too, up to ``recordings_bytes`` in total.
    """
    made: dict[Path, RoundData] = {}
    for round_data in rounds:
        same = sum(other.started.round == round_data.started.round for other in made.values())
        into = folder / (f"{round_data.started.round}-{same + 1}" if same else round_data.started.round)
        if into.resolve() == round_data.folder.resolve():
            continue
        made[into] = round_data
        with os_errors(into, "name a folder that you may write"):
            for name in _FILES:
                if (round_data.folder / name).exists():
                    text = read_text(round_data.folder / name, _FIX, most_bytes=_MOST_BYTES, in_folder=True)
                    write_file(into / name, text.replace(str(round_data.folder.absolute()), into.name))
    _publish_recordings(made, recordings_bytes)
    return list(made)


def _publish_recordings(made: Mapping[Path, RoundData], most_bytes: int) -> None:
    recordings = [
        (source, recording_folder_of(into, row))
        for into, round_data in made.items()
        for row in round_data.recorded.values()
        if ((source := recording_folder_of(round_data.folder, row)) / ABOUT_FILE).is_file()
    ]
    for source, target in sorted(recordings, key=lambda pair: _size_bytes(pair[0])):
        most_bytes -= _size_bytes(source)
        if most_bytes < 0:
            return
        if target.exists():
            remove_recording(target)
        redact_recording(source, target)


def _size_bytes(recording: Path) -> int:
    return sum(file.stat().st_size for file in recording.iterdir())
