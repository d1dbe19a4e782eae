"""Recordings, days of them and forecasts from Python: taken, opened, predicted, ranked, advised, verified."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from tierwise.advise import Advice, AdviceOptions, DayAdvice, PaymentTerms, advise, advise_day
from tierwise.advise.costs import HEADROOM, parse_recorded_on
from tierwise.advise.verification import ForecastVerification, verify_forecast
from tierwise.api.arguments import (
    boolean_argument,
    error_naming_arguments,
    errors_naming_arguments,
    name_list_argument,
    number_argument,
    path_argument,
    placement_argument,
    placement_option_text,
    text_argument,
)
from tierwise.api.views import Rows, T, TableView, View
from tierwise.device_models.instances import find_instance
from tierwise.device_models.prices import YEARS
from tierwise.host import programs, python_process
from tierwise.host.processes import Process
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.input_files import first_validation_problem
from tierwise.model.names import split_names
from tierwise.model.placement import EVERYTHING, parse_placement
from tierwise.model.units import parse_size_bytes
from tierwise.predict import Prediction, Predictor, Ranking, Scenario, rank_placements
from tierwise.predict.scenario import LEAST_MEMORY_BYTES, require_asked
from tierwise.predict.scenario_machine import network_volumes
from tierwise.predict.time_savings import TimeSavings
from tierwise.predict.timeline import DayTimeline, timeline_of
from tierwise.predict.usability import Usability, judge_usability
from tierwise.recording import ABOUT_FILE, TABLES, Day, Observation, RecordingMetadata, open_recorded_source
from tierwise.recording.breakdown import Breakdown
from tierwise.recording.command_outputs import require_writable_output, write_output_file
from tierwise.report.advice import AdviceSurvey, advice_page, survey_advice
from tierwise.report.document import Document
from tierwise.report.recording.advice_report import advice_document
from tierwise.report.recording.day_report import day_advice_document, day_advice_section, day_document
from tierwise.report.recording.prediction_report import (
    prediction_document,
    predictions_chart,
    ranking_document,
)
from tierwise.report.recording.profile_report import profile_document
from tierwise.report.recording.recording_report import add_usability_verdict, observation_document
from tierwise.report.recording.verification_report import verification_document


@errors_naming_arguments()
def verify(
    forecast: str | Path, recording: str | Path, place: dict[str, str] | str | None = None
) -> View[ForecastVerification]:
    """Compare a forecast with what came of it, and if they differ, say why.

    Args:
        forecast: file that ``tierwise advise`` or ``predict`` printed with ``--format json``.
        recording: folder of a recording taken after the move.
        place: the placement of the file to verify; by default the one that fits the recorded devices, else
            the recommended one.

    Raises:
        TierwiseError: as ``tierwise verify``.
    """
    wanted: dict[str, str] | None = None
    if place is not None:
        wanted = (
            parse_placement(place, relations=True) if isinstance(place, str) else placement_argument(place)
        )
    verification = verify_forecast(
        path_argument(forecast, "forecast"), path_argument(recording, "recording"), wanted
    )
    return View(verification, verification_document(verification), "verification")


_LONGEST = "24h"
_BURST = "250ms"
"""A block of some 15 s then has six of them, by which the cost of recording is known."""
_ATTACH_S = 120.0
_FINISH_S = 600.0
_MOST_BYTES = 1 << 20


@contextmanager
def record(
    output: str | Path, *, engine: str | None = None, pid: int | None = None, duty: str | float = "1/10"
) -> Iterator[None]:
    """Record a running database until the block ends; needs root.

    Args:
        output: directory of the recording; it is created.
        engine: engine of the only such server on this machine.
        pid: alternatively, the first process of a running database.
        duty: share of the time in which events are recorded.

    Raises:
        TierwiseError: with the same messages as ``tierwise record``.
    """
    if (engine is None) == (pid is None):
        given = "neither engine nor pid is given" if pid is None else "engine and pid are both given"
        raise TierwiseError(given, "give one of the two")
    if pid is not None and (isinstance(pid, bool) or not isinstance(pid, int) or pid < 1):
        raise TierwiseError(f"pid: {pid!r} is no number of a process", "give the server's first process")
    who = ["--pid", str(pid)] if engine is None else ["--engine", text_argument(engine, "engine", "postgres")]
    folder, share = path_argument(output, "output").absolute(), text_argument(duty, "duty", "1/10")
    times = ["--duration", _LONGEST, "--duty", share, "--burst", _BURST]
    with os_errors(folder, "name a new directory"):
        if folder.exists() and any(folder.iterdir()):
            raise TierwiseError(f"{folder} is not empty", "name a new directory")
    arguments: list[str | Path] = ["record", "-o", folder, *who, *times]
    with tempfile.TemporaryFile() as log:
        command = python_process.own_python("tierwise.__main__", arguments)
        process = programs.start("record", command, variables=programs.inherited_variables(), log=log)
        try:
            _wait_for_attachment(process, folder, log)
            yield
        finally:
            process.signal(signal.SIGINT)
            try:  # interrupted again, it ends by itself: killed, it would leave its directory
                process.wait(_FINISH_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if not (folder / ABOUT_FILE).exists():
            raise _error(log)


def _wait_for_attachment(process: Process, output: Path, log: IO[bytes]) -> None:
    deadline = time.monotonic() + _ATTACH_S
    while not output.exists() or not any(output.iterdir()):
        if not process.running:
            raise _error(log)
        if time.monotonic() > deadline:
            raise TierwiseError("recording did not begin", f"run tierwise record -o {output} to see why")
        time.sleep(0.05)


def _error(log: IO[bytes]) -> TierwiseError:
    log.seek(max(0, log.seek(0, os.SEEK_END) - _MOST_BYTES))
    text = log.read().decode("utf-8", "replace")
    line = next((line for line in reversed(text.splitlines()) if line.startswith("tierwise: ")), text.strip())
    message, _, fix = line.removeprefix("tierwise: ").rpartition(": ")
    return error_naming_arguments(TierwiseError(message or fix, fix if message else "run tierwise doctor"))


Place = Mapping[str, str] | str
"""Role, or ``all``, to device; or text in the form ``log=nvme-dc``."""


class AdviceView(View[T]):
    """An advice; its page shows every placement."""

    def __init__(
        self, advice: T, document: Document, surveyed: Callable[[], AdviceSurvey], day: Document = ()
    ) -> None:
        """Store the advice. ``surveyed`` is called when a page is wanted; ``day`` goes before its answer."""
        super().__init__(advice, document, "advice")
        self.surveyed, self._day = surveyed, day

    def to_html(self, path: str | Path) -> None:
        """Write one page that opens offline: the decision, and an explorer of all placements."""
        file = path_argument(path, "path")
        require_writable_output(file)
        write_output_file(file, advice_page(self.surveyed(), day=self._day).encode())


class RecordedRun:
    """An opened recording. The first prediction replays it."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Open a recording.

        Args:
            path: its folder.
            fresh: predict new devices in the state of their first day, not of long use.

        Raises:
            TierwiseError: no recording, or a damaged or newer one.
        """
        self._path, self._source = path, open_recorded_source(path)
        self._fresh = fresh

    @property
    def info(self) -> RecordingMetadata:
        """Metadata of the recording."""
        return self._source.about

    @property
    def warnings(self) -> list[str]:
        """Warnings that apply to every result from the recording."""
        return self._source.warnings

    @cached_property
    def tables(self) -> Mapping[str, TableView]:
        """Each table by name (docs/reference/recordings.md). ``requests``: block requests."""
        if isinstance(self._source, Observation):
            raise TierwiseError(f"{self._path} is an observation, which has no tables", "use a recording")
        connection = self._source.connect()
        views = {name: TableView(connection.table(name)) for name in TABLES}
        return {**views, "requests": views["blocks"]}

    @property
    def usability(self) -> Usability:
        """Whether predictions from it can be trusted within their intervals, and why not."""
        return judge_usability(self._predictor)

    def breakdown(self) -> View[Breakdown]:
        """Where the time went, by class of threads and by role."""
        breakdown = self._source.break_down()
        if isinstance(self._source, Observation):
            return View(breakdown, observation_document(self._source), "profile")
        document = profile_document(breakdown, TimeSavings(), self.warnings, self.info.devices)
        return View(breakdown, document, "profile")

    @errors_naming_arguments()
    def predict(self, place: Place | None = None, **machine: Any) -> Prediction:
        """Predict the recorded work on another machine.

        Args:
            place: roles to move and their devices; nothing moves if not given.
            machine: fields of :class:`~tierwise.predict.Scenario`, for example ``cores``, ``clients``,
                ``memory`` (as ``48G``), ``rate_per_s``, ``growth``, ``settings`` (as
                ``["synchronous_commit=off"]``), ``instance`` (a name or file, as ``m6i.large``)
                with ``recorded_on`` (as ``gp3``).

        Raises:
            TierwiseError: an unknown role or device, or a recording without work in it.
        """
        return self._predictor.predict([_scenario(place, machine)])[0]

    @errors_naming_arguments()
    def predict_many(self, places: Sequence[Place], **machine: Any) -> Rows[Prediction]:
        """Predict several placements, each like :meth:`predict`."""
        if isinstance(places, (str, Mapping)) or not isinstance(places, Iterable):
            raise TierwiseError(f"places: {places!r} is no list of placements", "write [{'log': 'nvme-dc'}]")
        answers = self._predictor.predict([_scenario(place, machine) for place in places])
        base = self._predictor.as_recorded
        document = prediction_document(self._predictor.run, base, answers)
        rows = [_row(answer) for answer in answers]
        document = add_usability_verdict(self.usability, document)
        return Rows(answers, document, "prediction", rows, lambda: predictions_chart(base, answers))

    @errors_naming_arguments()
    def rank(self, devices: Sequence[str], **machine: Any) -> View[Ranking]:
        """Rank every placement over some devices, like ``tierwise predict --devices``."""
        ranking = rank_placements(
            self._predictor, name_list_argument(devices, "devices"), _scenario({}, machine, ranked=True)
        )
        document = ranking_document(self._predictor.run, self._predictor.as_recorded, ranking)
        return View(ranking, add_usability_verdict(self.usability, document), "ranking")

    @errors_naming_arguments()
    def advise(
        self,
        devices: Sequence[str] = (),
        budget: str | float | None = None,
        goal: str | None = None,
        *,
        have: Sequence[str] = (),
        headroom: str = HEADROOM,
        growth: str | float = "",
        years: float = YEARS,
        prices: str | Path | None = None,
        recorded_on: Place = "",
        may_lose: str | float | None = None,
        tables: bool = False,
        instance: str | Path | Sequence[str] = (),
        grow: str | float | None = None,
        rebuildable: bool = False,
    ) -> AdviceView[Advice]:
        """Advise what to move first.

        Args:
            devices: candidate devices.
            budget: most that a placement may cost, for example ``50/month``, or 50.
            goal: for example ``tps=2000`` or ``p99=5ms``.
            have: devices that are owned already and cost nothing.
            headroom: free space on each new device, for example ``30%``.
            growth: of the files that a new device has to hold, for example ``50%``.
            years: service life of a purchased device.
            prices: TOML file of prices, which replace those that ship.
            recorded_on: what the recorded device is, for example ``gp3`` or ``log=io2,all=gp3``.
            may_lose: a setting may be recommended if a crash loses commits of this time at most, as ``1s``.
            tables: whether to answer for tables and indexes too, if the recording has their names.
            instance: machine of the database, as ``m6i.large`` or a file; further ones are alternatives.
            grow: say what breaks first when data and load grow so, as ``3x``.
            rebuildable: the database can be rebuilt, as a replica: a stop of the machine may lose its files.
        """
        terms = PaymentTerms.parse(
            have=",".join(name_list_argument(have, "have")),
            headroom=text_argument(headroom, "headroom", "30%"),
            growth=text_argument(growth, "growth", "50%"),
            years=number_argument(years, "years", YEARS),
            prices=None if prices is None else path_argument(prices, "prices"),
            recorded_on=placement_option_text(recorded_on, "recorded_on"),
            rebuildable=boolean_argument(rebuildable, "rebuildable"),
        )
        instances = name_list_argument(instance, "instance")
        options = AdviceOptions.parse(
            "",
            None if budget is None else text_argument(budget, "budget", "50/month"),
            None if goal is None else text_argument(goal, "goal", "tps=2000"),
            terms,
            fresh=self._fresh,
            may_lose=None if may_lose is None else text_argument(may_lose, "may_lose", "1s"),
            instances=instances,
            grow=None if grow is None else text_argument(grow, "grow", "3x"),
        )
        options = replace(options, devices=name_list_argument(devices, "devices"))
        advice = advise(self._predictor, options, tables=boolean_argument(tables, "tables"))

        def surveyed() -> AdviceSurvey:
            machine = next(iter(instances), "")
            return survey_advice(self._predictor, advice, terms, self._path, self._fresh, instance=machine)

        return AdviceView(advice, advice_document(advice), surveyed)

    @cached_property
    def _predictor(self) -> Predictor:
        predictor = Predictor.open(self._path, fresh=self._fresh)
        predictor.replayer.remember()  # the page of an advice needs the placements that it ranks
        return predictor


def _scenario(place: Place | None, machine: Mapping[str, Any], *, ranked: bool = False) -> Scenario:
    fields = {name: value for name, value in machine.items() if value is not None}
    if "placement" in fields:
        raise TierwiseError("placement: the placement is the first argument", "leave it out of the fields")
    require_asked(fields)
    for name in fields.keys() - {"emulated", "emulated_flushes"}:
        if isinstance(fields[name], bool):
            raise TierwiseError(f"{name}: {fields[name]} is no number", "give a number")
    _convert_sizes(fields)
    if isinstance(fields.get("instance"), (str, Path)):
        fields["instance"] = find_instance(str(fields["instance"]))
    if "recorded_on" in fields:
        text = placement_option_text(fields.pop("recorded_on"), "recorded_on")
        recorded_on = parse_recorded_on(text)
        fields["recorded_volumes"] = network_volumes(recorded_on, fields.get("instance"))
    if isinstance(fields.get("settings"), str):
        fields["settings"] = split_names(fields["settings"])
    elif isinstance(fields.get("settings"), Mapping):
        fields["settings"] = [f"{name}={value}" for name, value in fields["settings"].items()]
    try:
        scenario = Scenario(placement=placement_argument(place), **fields)
    except ValidationError as error:
        problem = first_validation_problem(error, Scenario)
        raise TierwiseError(problem, "name fields of tierwise.predict.Scenario") from None
    if not ranked:
        scenario.require_disk(placed=bool(scenario.placement))
    return scenario


def _convert_sizes(fields: dict[str, Any]) -> None:
    """Replace ``memory`` and ``buffer``, which are texts with a unit, by their fields in bytes."""
    for name in ("memory", "buffer"):
        if name in fields:
            if f"{name}_bytes" in fields:
                raise TierwiseError(f"{name} and {name}_bytes are both given", "give one of the two")
            size = str(fields.pop(name))  # a number lacks its unit, which the error says
            fields[f"{name}_bytes"] = parse_size_bytes(size, name, LEAST_MEMORY_BYTES)


def _row(answer: Prediction) -> dict[str, Any]:
    """One prediction in plain values; an unmoved role has no column."""
    row: dict[str, Any] = {name: answer.scenario.placement[name] for name in answer.scenario.placement}
    row.setdefault(EVERYTHING, "recorded")
    if answer.scenario.settings:
        row["settings"] = ", ".join(answer.scenario.settings)
    for name in ("rate_per_s", "speedup", "elapsed_s", "p50_us", "p95_us", "p99_us"):
        figure = getattr(answer, name)
        row |= {name: figure and figure.value, f"{name}_low": figure and figure.low}
        row[f"{name}_high"] = figure and figure.high
    row["refused"] = answer.refused.message if answer.refused else None
    return row


class RecordedDay:
    """An opened day: a sequence of recordings, the earliest first."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Open all recordings of a folder.

        Args:
            path: the folder.
            fresh: predict new devices in the state of their first day, not of long use.

        Raises:
            TierwiseError: if no recording can be opened.
        """
        self._day, self._fresh = Day.open(path), fresh

    def __len__(self) -> int:
        """Number of recordings."""
        return len(self._day.recordings)

    def __iter__(self) -> Iterator[RecordedRun]:
        """The recordings."""
        return (self[number] for number in range(len(self)))

    def __getitem__(self, which: int | str) -> RecordedRun:
        """A recording by its number, or by the name of its folder.

        Raises:
            KeyError: if there is none of that name.
        """
        names = {recording.path.name: recording for recording in self._day.recordings}
        recording = self._day.recordings[which] if isinstance(which, int) else names[which]
        return RecordedRun(recording.path, fresh=self._fresh)

    @property
    def warnings(self) -> list[str]:
        """A sentence for each recording that could not be opened."""
        return self._day.warnings

    def timeline(self) -> View[DayTimeline]:
        """Rate, latency, log waits and busy devices of each recording, without a replay."""
        return View(self._timeline, day_document(self._timeline), f"day {self._timeline.folder}")

    def advise(
        self,
        devices: Sequence[str] = (),
        budget: str | float | None = None,
        goal: str | None = None,
        **conditions: Any,
    ) -> AdviceView[DayAdvice]:
        """Advise for the peak, the mean and the worst hour, as :meth:`RecordedRun.advise` does for each.

        Args:
            devices: candidate devices.
            budget: most that a placement may cost, for example ``50/month``, or 50.
            goal: for example ``tps=2000`` or ``p99=5ms``.
            conditions: the further arguments of :meth:`RecordedRun.advise`, such as ``have``.
        """

        def ask(name: str) -> AdviceView[Advice]:
            return self[name].advise(devices, budget, goal, **conditions)

        views: dict[str, AdviceView[Advice]] = {}
        advice = advise_day(self._timeline, lambda name: views.setdefault(name, ask(name)).data)
        peak = self._timeline.chosen["peak"]

        def surveyed() -> AdviceSurvey:
            return (views.get(peak) or ask(peak)).surveyed()  # which raises its reason again

        return AdviceView(advice, day_advice_document(advice), surveyed, day_advice_section(advice))

    @cached_property
    def _timeline(self) -> DayTimeline:
        return timeline_of(self._day)


def open_recording(path: str | Path, *, fresh: bool = False) -> RecordedRun | RecordedDay:
    """Open the recording in a folder, or the day of recordings in it; see :class:`RecordedRun`."""
    resolved, fresh = path_argument(path, "path"), boolean_argument(fresh, "fresh")
    with os_errors(resolved, "name a folder that tierwise record has written to its end"):
        is_day = Day.is_at(resolved)
    return RecordedDay(resolved, fresh=fresh) if is_day else RecordedRun(resolved, fresh=fresh)
