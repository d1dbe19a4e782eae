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

from tierwise.advise import Advice, AdviceOptions, DayAdvice, Terms, advise, advise_day
from tierwise.advise.costs import parse_recorded_on
from tierwise.advise.verification import Verification
from tierwise.advise.verification import verify as verify_forecast
from tierwise.api.arguments import flag_of, names_of, number_of, path_of, place_of, place_text, text_of
from tierwise.api.views import Rows, TableView, View
from tierwise.device_models.instances import find_instance
from tierwise.device_models.prices import YEARS
from tierwise.host import interpreter, programs
from tierwise.host.processes import Process
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import first_problem
from tierwise.model.names import names_in
from tierwise.model.placement import EVERYTHING, parse_place
from tierwise.model.units import parse_size_bytes
from tierwise.predict import Prediction, Predictor, Ranking, Scenario, rank
from tierwise.predict.machine import network_volumes
from tierwise.predict.savings import Savings
from tierwise.predict.scenario import LEAST_MEMORY_BYTES
from tierwise.predict.timeline import Timeline, timeline_of
from tierwise.predict.usability import Usability, usability
from tierwise.recording import ABOUT_FILE, TABLES, About, Day, Observation, open_source
from tierwise.recording.breakdown import Breakdown
from tierwise.recording.outputs import require_writable, write_file
from tierwise.report.advice import Subject, advice_page, subject
from tierwise.report.recording.advice import advice_document
from tierwise.report.recording.day import day_advice_document, day_document
from tierwise.report.recording.prediction import answers_chart, prediction_document, ranking_document
from tierwise.report.recording.profile import profile_document
from tierwise.report.recording.recorded import observation_document
from tierwise.report.recording.verification import verification_document


def verify(
    forecast: str | Path, recording: str | Path, place: dict[str, str] | str | None = None
) -> View[Verification]:
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
        wanted = parse_place(place, relations=True) if isinstance(place, str) else place_of(place)
    verification = verify_forecast(path_of(forecast, "forecast"), path_of(recording, "recording"), wanted)
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
    who = ["--pid", str(pid)] if engine is None else ["--engine", text_of(engine, "engine", "postgres")]
    folder, share = path_of(output, "output").absolute(), text_of(duty, "duty", "1/10")
    times = ["--duration", _LONGEST, "--duty", share, "--burst", _BURST]
    arguments: list[str | Path] = ["record", "-o", folder, *who, *times]
    with tempfile.TemporaryFile() as log:
        command = interpreter.own("tierwise.__main__", arguments)
        process = programs.start("record", command, variables=programs.own_variables(), log=log)
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
    return TierwiseError(message or fix, fix if message else "run tierwise doctor")


Place = Mapping[str, str] | str
"""Role, or ``all``, to device; or text in the form ``log=nvme-dc``."""


class AdviceView(View[Advice]):
    """An advice; its page shows every placement."""

    def __init__(self, advice: Advice, surveyed: Callable[[], Subject]) -> None:
        """Store the advice. ``surveyed`` is called when a page is wanted."""
        super().__init__(advice, advice_document(advice), "advice")
        self._surveyed = surveyed

    def to_html(self, path: str | Path) -> None:
        """Write one page that opens offline: the decision, and an explorer of all placements."""
        file = path_of(path, "path")
        require_writable(file)
        write_file(file, advice_page(self._surveyed()).encode())


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
        self._path, self._source = path, open_source(path)
        self._fresh = fresh

    @property
    def info(self) -> About:
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
        return usability(self._predictor)

    def breakdown(self) -> View[Breakdown]:
        """Where the time went, by class of threads and by role."""
        breakdown = self._source.break_down()
        if isinstance(self._source, Observation):
            return View(breakdown, observation_document(self._source), "profile")
        document = profile_document(breakdown, Savings(), self.warnings, self.info.devices)
        return View(breakdown, document, "profile")

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

    def predict_many(self, places: Sequence[Place], **machine: Any) -> Rows[Prediction]:
        """Predict several placements, each like :meth:`predict`."""
        if isinstance(places, (str, Mapping)) or not isinstance(places, Iterable):
            raise TierwiseError(f"places: {places!r} is no list of placements", "write [{'log': 'nvme-dc'}]")
        answers = self._predictor.predict([_scenario(place, machine) for place in places])
        base = self._predictor.as_recorded
        document = prediction_document(self._predictor.run, base, answers)
        rows = [_row(answer) for answer in answers]
        return Rows(answers, document, "prediction", rows, lambda: answers_chart(base, answers))

    def rank(self, devices: Sequence[str], **machine: Any) -> View[Ranking]:
        """Rank every placement over some devices, like ``tierwise predict --devices``."""
        ranking = rank(self._predictor, names_of(devices, "devices"), _scenario({}, machine, ranked=True))
        document = ranking_document(self._predictor.run, self._predictor.as_recorded, ranking)
        return View(ranking, document, "ranking")

    def advise(
        self,
        devices: Sequence[str] = (),
        budget: str | float | None = None,
        goal: str | None = None,
        *,
        have: Sequence[str] = (),
        headroom: str = "",
        growth: str | float = "",
        years: float = YEARS,
        prices: str | Path | None = None,
        recorded_on: Place = "",
        may_lose: str | float | None = None,
        tables: bool = False,
        instance: str | Path | Sequence[str] = (),
        grow: str | float | None = None,
        rebuildable: bool = False,
    ) -> AdviceView:
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
        terms = Terms.parse(
            have=",".join(names_of(have, "have")),
            headroom=text_of(headroom, "headroom", "30%"),
            growth=text_of(growth, "growth", "50%"),
            years=number_of(years, "years", YEARS),
            prices=None if prices is None else path_of(prices, "prices"),
            recorded_on=place_text(recorded_on, "recorded_on"),
            rebuildable=flag_of(rebuildable, "rebuildable"),
        )
        instances = names_of(instance, "instance")
        options = AdviceOptions.parse(
            "",
            None if budget is None else text_of(budget, "budget", "50/month"),
            None if goal is None else text_of(goal, "goal", "tps=2000"),
            terms,
            fresh=self._fresh,
            may_lose=None if may_lose is None else text_of(may_lose, "may_lose", "1s"),
            instances=instances,
            grow=None if grow is None else text_of(grow, "grow", "3x"),
        )
        options = replace(options, devices=names_of(devices, "devices"))
        advice = advise(self._predictor, options, tables=flag_of(tables, "tables"))

        def surveyed() -> Subject:
            machine = next(iter(instances), "")
            return subject(self._predictor, advice, terms, self._path, self._fresh, instance=machine)

        return AdviceView(advice, surveyed)

    @cached_property
    def _predictor(self) -> Predictor:
        predictor = Predictor.open(self._path, fresh=self._fresh)
        predictor.replayer.remember()  # the page of an advice needs the placements that it ranks
        return predictor


_FOLLOW = {
    "recorded_volumes": "recorded_on",
    "set_by_instance": "instance",
    "set_by_growth": "growth",
}
"""Fields of a scenario that others set."""


def _scenario(place: Place | None, machine: Mapping[str, Any], *, ranked: bool = False) -> Scenario:
    fields = {name: value for name, value in machine.items() if value is not None}
    if "placement" in fields:
        raise TierwiseError("placement: the placement is the first argument", "leave it out of the fields")
    for name in fields.keys() & _FOLLOW.keys():
        raise TierwiseError(f"{name}: it follows from {_FOLLOW[name]}", f"give {_FOLLOW[name]} in its place")
    for name in fields.keys() - {"emulated", "emulated_flushes"}:
        if isinstance(fields[name], bool):
            raise TierwiseError(f"{name}: {fields[name]} is no number", "give a number")
    for name in ("memory", "buffer"):
        if name in fields:
            size = str(fields.pop(name))  # a number lacks its unit, which the error says
            fields[f"{name}_bytes"] = parse_size_bytes(size, name, LEAST_MEMORY_BYTES)
    if isinstance(fields.get("instance"), (str, Path)):
        fields["instance"] = find_instance(str(fields["instance"]))
    if "recorded_on" in fields:
        text = place_text(fields.pop("recorded_on"), "recorded_on")
        recorded_on = parse_recorded_on(text)
        fields["recorded_volumes"] = network_volumes(recorded_on, fields.get("instance"))
    if isinstance(fields.get("settings"), str):
        fields["settings"] = names_in(fields["settings"])
    elif isinstance(fields.get("settings"), Mapping):
        fields["settings"] = [f"{name}={value}" for name, value in fields["settings"].items()]
    try:
        scenario = Scenario(placement=place_of(place), **fields)
    except ValidationError as error:
        raise TierwiseError(first_problem(error), "name fields of tierwise.predict.Scenario") from None
    if not ranked:
        scenario.require_disk(placed=bool(scenario.placement))
    return scenario


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

    def timeline(self) -> View[Timeline]:
        """Rate, latency, log waits and busy devices of each recording, without a replay."""
        return View(self._timeline, day_document(self._timeline), f"day {self._timeline.folder}")

    def advise(
        self, devices: Sequence[str], budget: str | float | None = None, goal: str | None = None
    ) -> View[DayAdvice]:
        """Advise for the peak, the mean and the worst hour; see :meth:`RecordedRun.advise`."""
        advice = advise_day(self._timeline, lambda name: self[name].advise(devices, budget, goal).data)
        return View(advice, day_advice_document(advice), "advice")

    @cached_property
    def _timeline(self) -> Timeline:
        return timeline_of(self._day)


def open_recording(path: str | Path, *, fresh: bool = False) -> RecordedRun | RecordedDay:
    """Open the recording in a folder, or the day of recordings in it; see :class:`RecordedRun`."""
    resolved, fresh = path_of(path, "path"), flag_of(fresh, "fresh")
    return RecordedDay(resolved, fresh=fresh) if Day.is_at(resolved) else RecordedRun(resolved, fresh=fresh)
