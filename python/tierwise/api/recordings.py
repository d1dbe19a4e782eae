"""A recording from Python: metadata, time breakdown, predictions, ranking, advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tierwise.advise import Advice, Goal, Terms
from tierwise.advise import advise as find_advice
from tierwise.api.views import Rows, TableView, View
from tierwise.device_models.prices import YEARS
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import alt
from tierwise.model.output_files import write_file
from tierwise.model.placement import EVERYTHING, parse_place
from tierwise.model.units import parse_duration_s, parse_monthly, parse_size_bytes
from tierwise.predict import Prediction, Predictor, Ranking, Scenario, rank
from tierwise.predict.savings import Savings
from tierwise.predict.usability import Usability, usability
from tierwise.recording import TABLES, About, Observation, open_source
from tierwise.recording.breakdown import Breakdown
from tierwise.report.advice import Subject, advice_page, subject
from tierwise.report.recording.advice import advice_document
from tierwise.report.recording.observation import observation_document
from tierwise.report.recording.prediction import prediction_document, ranking_document
from tierwise.report.recording.profile import profile_document

Place = Mapping[str, str] | str
"""Role, or ``all``, to device; or text in the form ``log=nvme-dc``."""


class AdviceView(View[Advice]):
    """An advice; its page shows every placement."""

    def __init__(self, advice: Advice, surveyed: Callable[[], Subject]) -> None:
        """Store the advice. ``surveyed`` is called when a page is wanted: it replays every placement."""
        super().__init__(advice, advice_document(advice), "advice")
        self._surveyed = surveyed

    def to_html(self, path: str | Path) -> None:
        """Write one page that opens offline: the decision, and an explorer of all placements."""
        write_file(Path(path), advice_page(self._surveyed()))


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
        found = {name: TableView(connection.table(name)) for name in TABLES}
        return {**found, "requests": found["blocks"]}

    @property
    def usability(self) -> Usability:
        """Whether predictions from it can be trusted within their intervals, and why not."""
        return usability(self._predictor)

    def breakdown(self) -> View[Breakdown]:
        """Where the time went, by class of threads and by role."""
        found = self._source.break_down()
        if isinstance(self._source, Observation):
            return View(found, observation_document(self._source), "profile")
        document = profile_document(found, Savings(), self.warnings, self.info.devices)
        return View(found, document, "profile")

    def predict(self, place: Place | None = None, **machine: Any) -> Prediction:
        """Predict the recorded work on another machine.

        Args:
            place: roles to move and their devices; nothing moves if not given.
            machine: fields of :class:`~tierwise.predict.Scenario`, for example ``cores``, ``clients``,
                ``memory`` (as ``48G``), ``rate_per_s``, ``growth``, ``settings`` (as
                ``["synchronous_commit=off"]``).

        Raises:
            TierwiseError: an unknown role or device, or a recording without work in it.
        """
        return self._predictor.predict([_scenario(place or {}, machine)])[0]

    def predict_many(self, places: Sequence[Place], **machine: Any) -> Rows[Prediction]:
        """Predict several placements, each like :meth:`predict`."""
        answers = self._predictor.predict([_scenario(place, machine) for place in places])
        base = self._predictor.as_recorded
        document = prediction_document(self._predictor.run, base, answers)

        def chart() -> alt.LayerChart:
            from tierwise.report.charts.prediction import answers_chart  # slow to import

            return answers_chart(base, answers)

        return Rows(answers, document, "prediction", [_row(answer) for answer in answers], chart)

    def rank(self, devices: Sequence[str], **machine: Any) -> View[Ranking]:
        """Rank every placement over some devices, like ``tierwise predict --devices``."""
        ranking = rank(self._predictor, list(devices), _scenario({}, machine))
        document = ranking_document(self._predictor.run, self._predictor.as_recorded, ranking)
        return View(ranking, document, "ranking")

    def advise(
        self,
        devices: Sequence[str] = (),
        budget: str | None = None,
        goal: str | None = None,
        *,
        have: Sequence[str] = (),
        headroom: str = "",
        growth: str = "",
        years: float = YEARS,
        prices: str | Path | None = None,
        recorded_on: str = "",
        may_lose: str | None = None,
    ) -> AdviceView:
        """Advise what to move first.

        Args:
            devices: candidate devices.
            budget: most that a placement may cost, for example ``50/month``.
            goal: for example ``tps=2000`` or ``p99=5ms``.
            have: devices that are owned already and cost nothing.
            headroom: free space on each new device, for example ``30%``.
            growth: of the files that a new device has to hold, for example ``50%``.
            years: service life of a purchased device.
            prices: TOML file of prices, which replace those that ship.
            recorded_on: what the recorded device is, for example ``gp3`` or ``log=io2,all=gp3``.
            may_lose: a setting may be recommended if a crash loses commits of this time at most, as ``1s``.
        """
        terms = Terms.parse(
            have=",".join(have),
            headroom=headroom,
            growth=growth,
            years=years,
            prices=None if prices is None else Path(prices),
            recorded_on=recorded_on,
        )
        most = None if budget is None else parse_monthly(budget, "budget", terms.prices.currency)
        wanted = None if goal is None else Goal.parse(goal)
        loss_s = None if may_lose is None else parse_duration_s(may_lose, "may_lose")
        advice = find_advice(self._predictor, list(devices), most, wanted, terms, loss_s)
        return AdviceView(advice, lambda: subject(self._predictor, advice, terms, self._path, self._fresh))

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor.open(self._path, fresh=self._fresh)


def _scenario(place: Place, machine: Mapping[str, Any]) -> Scenario:
    fields = dict(machine)
    if "memory" in fields:
        fields["memory_bytes"] = parse_size_bytes(fields.pop("memory"), "memory")
    return Scenario(placement=parse_place(place) if isinstance(place, str) else dict(place), **fields)


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
