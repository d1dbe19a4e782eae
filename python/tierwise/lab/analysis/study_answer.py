"""Computes the answer from results: what to move first, its gain, and its certainty. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tierwise.lab.analysis.answer_sentences import (
    AnswerFacts,
    AnswerSentences,
    PlacementPhraser,
    write_answer_sentences,
)
from tierwise.lab.analysis.device_benchmark import DeviceBenchmark, benchmark_sentences, device_benchmark_of
from tierwise.lab.analysis.fault_summary import (
    DeviceDeathRow,
    PowerCutRow,
    build_death_rows,
    build_durability_frontier,
    death_headline,
    durability_headline,
)
from tierwise.lab.analysis.lap_comparison import LapRow, lap_rows, lap_sentences
from tierwise.lab.analysis.paper_figures import MeasuredFigures, PaperRow, paper_rows
from tierwise.lab.analysis.placement_rows import (
    Measure,
    PlacementRow,
    build_placement_rows,
    comparison_measure,
)
from tierwise.lab.analysis.result_validity import ResultValidity, validity_of
from tierwise.lab.analysis.study_conditions import (
    HostRow,
    StudyConditions,
    conditions_of,
    device_path_caveats,
    host_caveats,
    host_rows,
    page_cache_caveats,
    write_through_caveats,
)
from tierwise.lab.analysis.sweeps import SweepResult, setting_words, sweeps_of
from tierwise.model.errors import TierwiseError
from tierwise.model.names import group_by_key, join_words
from tierwise.model.placement import ROLE_NAMES
from tierwise.predict.inseparable_roles import inseparable_roles_of, parted_role_groups
from tierwise.report.palette import placement_colour_names
from tierwise.results import RunResult, StrictModel, StudyInfo

GroupKey = tuple[str, tuple[tuple[str, str], ...]]
"""Engine, and the setting in the order of its names."""


class PlacementComparison(StrictModel):
    """Placements of one engine under one setting."""

    engine: str
    engine_version: str
    setting: dict[str, str]
    workload: str
    measure: Measure
    """Measure for comparing placements."""
    baseline: str
    rows: list[PlacementRow]
    first: str | None
    """The placement to adopt first, if any is significantly faster than the baseline: of those that cannot be
    told apart, the cheapest."""
    alike: list[str] = []
    """The others that cannot be told from it, the cheapest first."""
    laps: list[LapRow] = []
    """Laps of a workload that runs lap by lap."""
    benchmark: DeviceBenchmark | None = None
    """Results of a study that measured devices instead of a database."""
    hosts: list[HostRow] = []
    """Of a study on several hosts."""
    words: AnswerSentences
    paper: list[PaperRow]
    validity: ResultValidity

    @property
    def label(self) -> str:
        """Engine and setting, which identify a comparison within its study."""
        return ", ".join([self.engine, *setting_words(self.setting)])

    @property
    def ratio_title(self) -> str:
        """What ratios of this comparison mean."""
        how = "Times the rate of" if self.measure == "rate" else "Times faster than"
        return f"{how} {self.baseline}"

    @property
    def colours(self) -> dict[str, str]:
        """Placement -> name of its colour in tables and charts."""
        return placement_colour_names([row.placement for row in self.rows], self.baseline)


class StudyAnswer(StrictModel):
    """Everything that a report shows."""

    study: StudyInfo
    comparisons: list[PlacementComparison]
    sweeps: list[SweepResult] = []
    """Settings that the study sweeps, across comparisons."""
    power_cuts: list[PowerCutRow] = []
    """Of a study of power cuts, which has no comparisons and no sweeps."""
    device_deaths: list[DeviceDeathRow] = []
    """Of a study of device deaths, in the same way."""
    conditions: StudyConditions

    @property
    def headline(self) -> str:
        """The answer in a few sentences; if there are several comparisons, each is labelled."""
        if self.power_cuts:
            return durability_headline(self.power_cuts)
        if self.device_deaths:
            return death_headline(self.device_deaths)
        if len(self.comparisons) == 1:
            return self.comparisons[0].words.headline
        return "\n".join(
            f"{comparison.label}: {comparison.words.headline}" for comparison in self.comparisons
        )

    @property
    def of_faults(self) -> bool:
        """Whether it is of a study of power cuts or of deaths."""
        return bool(self.power_cuts or self.device_deaths)

    @property
    def notes(self) -> list[str]:
        """Placements that were not run, with reasons, and the number of remaining runs."""
        skipped = [f"Not run: {name}: {reason}" for name, reason in self.study.skipped.items()]
        done, planned = self.conditions.finished, self.conditions.planned
        unfinished = [f"{done} of {planned} planned runs have ended."] if planned and done < planned else []
        return [*skipped, *unfinished]

    def figures_along(self, sweep: SweepResult) -> dict[str, MeasuredFigures]:
        """Our figures at each value of a swept setting."""
        return {
            comparison.setting[sweep.name]: MeasuredFigures(
                comparison.rows, comparison.laps, comparison.measure
            )
            for comparison in self.comparisons
            if comparison.engine == sweep.engine
            and sweep.name in comparison.setting
            and sweep.others.items() <= comparison.setting.items()
        }


def build_study_answer(results: Sequence[RunResult], info: StudyInfo) -> StudyAnswer:
    """Compute the answer from the runs of one study."""
    if not results:
        raise TierwiseError(
            f"study {info.name} has no finished run", f"run it: tierwise study run {info.name}"
        )
    cuts, deaths = build_durability_frontier(results, info), build_death_rows(results)
    if cuts or deaths:
        conditions = conditions_of(results, info)
        return StudyAnswer(
            study=info, comparisons=[], power_cuts=cuts, device_deaths=deaths, conditions=conditions
        )
    groups = group_by_key(
        ((result.engine.name, tuple(sorted(result.setting.items()))), result)
        for result in sorted(results, key=lambda result: result.order)
    )
    order = _in_order(groups, info)
    settings = [dict(setting) for _, setting in order]
    return StudyAnswer(
        study=info,
        comparisons=[_compare(groups[key], info, settings) for key in order],
        sweeps=sweeps_of(results, info),
        conditions=conditions_of(results, info),
    )


def _in_order(groups: Iterable[GroupKey], info: StudyInfo) -> list[GroupKey]:
    """By engine, then by the swept values, least resources first."""

    def place(key: GroupKey) -> list[object]:
        engine, setting = key
        return [engine, [(name, _position(info.sweep.get(name, []), value)) for name, value in setting]]

    return sorted(groups, key=place)


def _position(declared: Sequence[str], value: str) -> tuple[int, str]:
    return (declared.index(value), "") if value in declared else (len(declared), value)


def _compare(
    runs: Sequence[RunResult], info: StudyInfo, settings: Sequence[Mapping[str, str]]
) -> PlacementComparison:
    by_placement = {name: [run for run in runs if run.placement == name] for name in _names(runs, info)}
    measure, workload = comparison_measure(runs), runs[0].workload.title
    rows, first = build_placement_rows(by_placement, info.baseline, measure, info.seed)
    phraser = PlacementPhraser(
        (device for run in runs for device in run.devices),
        {role for run in runs for role in run.role_devices},
    )
    benchmark = device_benchmark_of(by_placement, info.seed)
    laps = lap_rows(by_placement, info.baseline, rows, info.seed)
    words = (
        benchmark_sentences(benchmark, runs)
        if benchmark
        else write_answer_sentences(AnswerFacts(rows, first, workload, info.baseline, measure), phraser)
    ).model_copy(update={"laps": lap_sentences(laps, list(by_placement), info.baseline)})
    hosts = host_rows(by_placement, rows, measure)
    caveats = [
        *words.caveats,
        *host_caveats(hosts, rows),
        *page_cache_caveats(runs),
        *write_through_caveats(runs),
        *device_path_caveats(runs),
        *_cannot_be_parted(runs[0].engine.name, first.row),
    ]
    words = words.model_copy(update={"caveats": caveats})
    return PlacementComparison(
        engine=runs[0].engine.name,
        engine_version=runs[0].engine.version,
        setting=runs[0].setting,
        workload=workload,
        measure=measure,
        baseline=info.baseline,
        rows=rows,
        first=first.row.placement if first.row else None,
        alike=[row.placement for row in first.alike],
        laps=laps,
        benchmark=benchmark,
        hosts=hosts,
        words=words,
        paper=paper_rows(MeasuredFigures(rows, laps, measure), runs[0].setting, info, settings),
        validity=validity_of(by_placement, measure),
    )


def _cannot_be_parted(engine: str, first: PlacementRow | None) -> list[str]:
    """What a study can do and a user cannot: to part files that the engine keeps together."""
    if first is None:
        return []
    moved = {role: device for device, roles in first.moved.items() for role in roles}
    return [
        f"Outside a study, {join_words([ROLE_NAMES[role] for role in group.roles])} move together: "
        f"{group.because}."
        for group in parted_role_groups(inseparable_roles_of(engine, first.summary.role_devices), moved)
    ]


def _names(runs: Sequence[RunResult], info: StudyInfo) -> list[str]:
    """Placements that ran: the baseline first, then as the study declares them."""
    ran = {run.placement for run in runs}
    declared = [info.baseline, *info.placements, *sorted(ran)]
    return [name for name in dict.fromkeys(declared) if name in ran]
