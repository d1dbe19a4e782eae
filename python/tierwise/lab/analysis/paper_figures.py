"""A paper's figures beside ours: the values, and each side's ratio to the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.lab.analysis.lap_comparison import LapRow
from tierwise.lab.analysis.measures import TIMES_OF_RUNS, Kind, measure_kind
from tierwise.lab.analysis.placement_rows import Measure, PlacementRow
from tierwise.lab.analysis.sweeps import SweepResult, setting_name
from tierwise.model.statistics import BoundKind, Interval
from tierwise.results import PaperValue, StrictModel, StudyInfo

SPEEDUP = "speedup"
"""A paper's figure that is itself a ratio: how many times faster than the baseline."""

_UNITS: dict[Kind, dict[str, float]] = {
    "seconds": {"s": 1.0, "ms": 1e3, "min": 1 / 60, "h": 1 / 3600},
    "share": {"%": 100.0},
    "rate": {"1/s": 1.0},
    "bytes": {
        "B": 1.0, "KB": 1e-3, "MB": 1e-6, "GB": 1e-9, "KiB": 2.0**-10, "MiB": 2.0**-20, "GiB": 2.0**-30,
    },
}  # fmt: skip
"""Unit of a paper's figure -> number of them in one of our units; counts and scores may have any unit."""


class MeasuredFigures:
    """Our figures of one comparison, by placement, lap and measure."""

    def __init__(self, rows: Sequence[PlacementRow], laps: Sequence[LapRow], measure: Measure) -> None:
        self._incomparable = TIMES_OF_RUNS if measure == "rate" else frozenset[str]()
        self._runs = {row.placement: row for row in rows}
        self._laps = {(cell.placement, lap.label): cell for lap in laps for cell in lap.cells}

    def get(self, placement: str, lap: str | None, what: str) -> Interval | None:
        """The median, or the ratio if ``what`` is a ratio; work stopped at a cap has only a time.

        Runs of fixed duration have no time to compare.
        """
        row, cell = self._runs.get(placement), self._laps.get((placement, lap or ""))
        measured = cell if lap else row
        of_work = cell if lap else row.summary if row else None
        if measured is None or of_work is None or (not lap and what in self._incomparable):
            return None
        if what in (SPEEDUP, "elapsed"):
            return measured.speedup if what == SPEEDUP else of_work.elapsed
        if of_work.stopped or what not in of_work.medians:
            return None
        return Interval(of_work.medians[what], None, None, 1)


class PaperRow(StrictModel):
    """One figure of the paper and ours. Both ratios are the base's value over this one's."""

    placement: str
    setting: dict[str, str]
    lap: str | None
    what: str
    unit: str
    source: str
    base: str
    """Base of both ratios."""
    paper_value: float
    our_value: float | None
    """Our value in the paper's unit; ``None`` if we have no comparable figure."""
    our_bound: BoundKind
    paper_ratio: float | None
    our_ratio: float | None
    ratio_bound: BoundKind

    @property
    def label(self) -> str:
        """The measure, with its lap."""
        return f"{self.what} of {self.lap}" if self.lap else self.what

    @property
    def agreement(self) -> float | None:
        """Our ratio over the paper's: 1 is full agreement."""
        if self.our_ratio is None or not self.paper_ratio or self.ratio_bound is not BoundKind.EXACT:
            return None
        return self.our_ratio / self.paper_ratio


def paper_rows(
    ours: MeasuredFigures, setting: Mapping[str, str], info: StudyInfo, settings: Sequence[Mapping[str, str]]
) -> list[PaperRow]:
    """Pair the paper's figures for this setting with ours, in the paper's order by measure and lap.

    Ratios are to the baseline, at the same setting and lap. ``settings`` are all settings that were run;
    the paper's figures for other settings are listed with the last of them, without ours.
    """
    figures = [figure for figure in info.paper if figure.setting.items() <= setting.items()]
    if setting == settings[-1]:
        figures += [
            f for f in info.paper if not any(f.setting.items() <= setting.items() for setting in settings)
        ]
    order = list(dict.fromkeys((figure.what, figure.lap) for figure in info.paper))
    return [
        _row(figure, ours, setting, info)
        for figure in sorted(figures, key=lambda figure: order.index((figure.what, figure.lap)))
    ]


def paper_sweep_rows(
    sweep: SweepResult, at: Mapping[str, MeasuredFigures], info: StudyInfo
) -> list[PaperRow]:
    """The paper's figures along a sweep, each with its ratio to the same figure at the least value.

    ``at`` contains our figures by value of the setting.
    """
    least, rows = sweep.values[0], []
    for figure in info.paper:
        value = figure.setting.get(sweep.name, least)
        here = {**sweep.others, sweep.name: value}
        if value != least and figure.setting.items() <= here.items() and value in at and least in at:
            # The same figure of the paper at the least value of the sweep.
            there = figure.model_copy(update={"setting": {**figure.setting, sweep.name: least}})
            theirs = next((other for other in info.paper if _same(other, there)), None)
            what = (figure.placement, figure.lap, figure.what)
            base = f"{setting_name(sweep.name)} {least}"
            rows.append(compare_with_paper(figure, theirs, at[value].get(*what), at[least].get(*what), base))
    return [row for row in rows if row.paper_ratio is not None]


def _same(a: PaperValue, b: PaperValue) -> bool:
    """Whether both are one figure of one placement at one point of a sweep."""
    return (a.placement, a.lap, a.what, a.setting) == (b.placement, b.lap, b.what, b.setting)


def _row(figure: PaperValue, ours: MeasuredFigures, setting: Mapping[str, str], info: StudyInfo) -> PaperRow:
    baseline = info.baseline
    of_baseline = figure.model_copy(update={"placement": baseline})
    their_base = next((other for other in info.paper if _same(other, of_baseline)), None)
    was_run = figure.setting.items() <= setting.items()
    here = ours.get(figure.placement, figure.lap, figure.what) if was_run else None
    base = ours.get(baseline, figure.lap, figure.what)
    if figure.placement == baseline:
        their_base = base = None
    return compare_with_paper(figure, their_base, here, base, baseline)


def compare_with_paper(
    figure: PaperValue,
    their_base: PaperValue | None,
    here: Interval | None,
    base: Interval | None,
    base_name: str,
) -> PaperRow:
    """One figure beside ours, with each side's ratio to a base."""
    any_unit = figure.what == SPEEDUP or measure_kind(figure.what) in ("count", "score")
    unit = 1.0 if any_unit else _UNITS.get(measure_kind(figure.what), {}).get(figure.unit)
    ratio = _ratio(base, here)
    paper_ratio = their_base.value / figure.value if their_base and figure.value else None
    if figure.what == SPEEDUP:
        paper_ratio, ratio = figure.value, here
    return PaperRow(
        **figure.model_dump(include=set(PaperRow.model_fields)),
        base=base_name,
        paper_value=figure.value,
        our_value=here.estimate * unit if here and unit else None,
        our_bound=here.bound if here else BoundKind.EXACT,
        paper_ratio=paper_ratio,
        our_ratio=ratio.estimate if ratio and unit else None,
        ratio_bound=ratio.bound if ratio else BoundKind.EXACT,
    )


def _ratio(base: Interval | None, here: Interval | None) -> Interval | None:
    """Base over here; a bound if one of the two is a lower bound, ``None`` if both are."""
    if base is None or here is None or not here.estimate or not base.estimate:
        return None
    if base.bound is not BoundKind.EXACT and here.bound is not BoundKind.EXACT:
        return None
    bound = base.bound if base.bound is not BoundKind.EXACT else here.inverse.bound
    return Interval(base.estimate / here.estimate, None, None, 1, bound)
