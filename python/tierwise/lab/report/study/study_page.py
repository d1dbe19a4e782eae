"""The answer of a study as a page: the answer first, then its evidence, then the conditions.

One page for many studies, with a section for each. A study without results states the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tierwise.lab.analysis.answer_sentences import AnswerSentences
from tierwise.lab.analysis.measures import COUNTER_NAMES
from tierwise.lab.analysis.paper_figures import paper_sweep_rows
from tierwise.lab.analysis.result_validity import ResultValidity
from tierwise.lab.analysis.study_answer import PlacementComparison, StudyAnswer
from tierwise.lab.analysis.study_conditions import StudyConditions
from tierwise.lab.analysis.sweeps import SweepResult
from tierwise.lab.report.charts.study_charts import study_figures, sweep_figures
from tierwise.lab.report.study.study_document import (
    benchmark_table,
    comparison_table,
    counter_table,
    fault_blocks,
    host_table,
    io_table,
    lap_table,
    latency_table,
    noise_table,
    overrun_table,
    paper_table,
    placement_proof_table,
    reason_sentences,
    score_table,
    sweep_blocks,
)
from tierwise.model import numbers
from tierwise.model.input_files import read_shipped_toml
from tierwise.report.document import Block, Bullets, FactList, Page, Section, Text, Tone, paragraphs

FOOTER = (
    "Intervals are 95\u00a0% percentile bootstrap intervals of medians and of ratios of medians of "
    "independent runs. “No difference” means that the interval of the ratio holds\u00a01."
)
_WORDS = read_shipped_toml(Path(__file__).parent / "captions.toml")
_STARTED = "%d %B %Y, %H:%M %Z"


def study_answer_page(answer: StudyAnswer) -> Page:
    """The page of one study's results."""
    single = len(answer.comparisons) == 1
    header: list[Block] = [Text(answer.study.question, Tone.QUIET)]
    if answer.of_faults:
        header += [Text(answer.headline, Tone.HEADLINE)]
    elif single:
        words = answer.comparisons[0].words
        header += [Text(words.title, Tone.HEADLINE), *finding_blocks(words)]
    else:
        header += [
            Text(numbers.counted_noun(len(answer.comparisons), "comparison"), Tone.HEADLINE),
            _contents(answer),
        ]
    version = ", ".join(answer.conditions.facts["tierwise"])
    return Page(
        title=answer.study.name,
        header=[*header, *paragraphs(answer.notes, Tone.WARNING)],
        body=[
            *study_answer_sections(answer),
            Section("", [Section("Conditions", condition_blocks(answer.conditions))]),
        ],
        footer=f"{FOOTER} Written by tierwise {version}.",
    )


def finding_blocks(words: AnswerSentences) -> list[Block]:
    """The finding, its reasons and its caveats; the title is the advice."""
    return [
        *paragraphs([words.finding] if words.advice else [], Tone.HEADLINE),
        *paragraphs([reason_sentences(words), words.price]),
        *paragraphs(words.caveats, Tone.WARNING),
    ]


def study_answer_sections(answer: StudyAnswer, prefix: str = "", brief: bool = False) -> list[Block]:
    """A section for each sweep, then for each comparison; ``brief`` limits them to the main figures."""
    if answer.of_faults:
        notes = Section("What was done, and how", [Bullets(answer.study.notes)])
        return [Section("", [*fault_blocks(answer), notes], id=f"{prefix}faults")]
    several = len(answer.comparisons) > 1
    sweeps = [
        _sweep(sweep, answer, f"{prefix}s{number}") for number, sweep in enumerate(answer.sweeps, start=1)
    ]
    comparisons = [
        Section(
            title=comparison.words.title if several else "",
            blocks=[
                *(finding_blocks(comparison.words) if several else []),
                *_evidence(comparison, answer, brief),
            ],
            id=f"{prefix}c{number}",
            label=comparison.label if several else "",
        )
        for number, comparison in enumerate(answer.comparisons, start=1)
    ]
    return [*sweeps, *comparisons]


def _contents(answer: StudyAnswer) -> Bullets:
    comparisons = [
        f"{comparison.label}: {comparison.words.finding} {comparison.words.advice}"
        for comparison in answer.comparisons
    ]
    sweeps = [
        f"{sweep.label}: {len(sweep.anomalies) or 'nothing'} significantly slower with more."
        if sweep.judged
        else sweep.label
        for sweep in answer.sweeps
    ]
    ids = [
        f"{kind}{number}"
        for kind, several in (("c", comparisons), ("s", sweeps))
        for number in range(1, len(several) + 1)
    ]
    return Bullets([*comparisons, *sweeps], ids)


def _evidence(comparison: PlacementComparison, answer: StudyAnswer, brief: bool) -> Iterator[Block]:
    figures = study_figures(comparison, brief)

    def charts(*names: str) -> list[Block]:
        return [replace(figures[name], caption=_WORDS["charts"][name]) for name in names if name in figures]

    if comparison.benchmark:
        yield Section(
            "Patterns", [*charts("patterns"), benchmark_table(comparison.benchmark, comparison.colours)]
        )
        checks = [
            Section(f"{it.placement}: {it.text}", [Bullets(it.reasons)]) for it in comparison.benchmark.flush
        ]
        yield Section("Does a flush reach the medium?", checks)
    else:
        if comparison.laps:
            laps = [Bullets(comparison.words.laps), *charts("laps", "laps-normalised", "laps-speedup")]
            yield Section("Laps", [*laps, lap_table(comparison.laps, comparison.colours), _note("laps")])
        notes = [_note("placements"), *([_note("projection")] if comparison.measure == "elapsed" else [])]
        placements = [*charts("elapsed", "speedup"), comparison_table(comparison, priced=True), *notes]
        yield Section("Placements compared", placements)
        if comparison.hosts:
            yield Section("Hosts", [host_table(comparison.hosts), _note("hosts")])
        yield Section(
            "Where session time went", [*(charts("waits") or _absent("waits")), *_sampling(comparison)]
        )
        yield from _counters(comparison, charts("amplification"), brief)
        if not brief:
            yield from _io(comparison, charts("bytes", "requests", "io"))
            yield from _latency(comparison, charts("latency"))
        yield from _paper(comparison, answer, charts("paper"))
    yield Section("May this be believed?", list(_validity(comparison, charts("order"))))


def _sampling(comparison: PlacementComparison) -> list[Block]:
    """The sampling error of wait shares."""
    errors = [row.summary.sampling_error for row in comparison.rows]
    greatest = max((error for error in errors if error is not None), default=None)
    of_share = "Sampling error of a share in one run: at most"
    return paragraphs([f"{of_share} ±{numbers.percent_text(greatest)}."] if greatest else [], Tone.QUIET)


def _counters(
    comparison: PlacementComparison, amplification: Sequence[Block], brief: bool
) -> Iterator[Section]:
    counted = [
        row.summary for row in comparison.rows if any(name in row.summary.medians for name in COUNTER_NAMES)
    ]
    if not counted:
        return
    scores = score_table([row.summary for row in comparison.rows], comparison.colours)
    blocks: list[Block] = [*([scores] if scores else []), counter_table(counted, COUNTER_NAMES)]
    capped = any(lap.some_stopped for lap in comparison.laps)
    blocks += [_note("counters"), *([_note("capped counters")] if capped else []), *amplification]
    if comparison.laps and not brief:
        tables = [counter_table(lap.cells, COUNTER_NAMES, lap.label) for lap in comparison.laps]
        blocks.append(Section("Counters of each lap", tables, folded=True))
    yield Section("Counters", blocks)


def _io(comparison: PlacementComparison, charts: Sequence[Block]) -> Iterator[Section]:
    rows = {row.placement: [*row.summary.io, *row.summary.device_io] for row in comparison.rows}
    notes = [f"{row.placement}: {note}" for row in comparison.rows for note in row.summary.io_notes]
    blocks = [*charts, io_table(rows, comparison.colours), _note("io"), *paragraphs(notes, Tone.QUIET)]
    yield Section("I/O by role", blocks if any(rows.values()) else _absent("I/O by role"))


def _latency(comparison: PlacementComparison, charts: Sequence[Block]) -> Iterator[Section]:
    summaries = [row.summary for row in comparison.rows]
    if any(summary.latency for summary in summaries):
        table = latency_table(summaries, comparison.colours)
        yield Section("Latency", [*charts, Section("Latency by transaction", [table], folded=True)])
    elif not comparison.laps:
        yield Section("Latency", _absent("latencies"))


def _paper(comparison: PlacementComparison, answer: StudyAnswer, chart: Sequence[Block]) -> Iterator[Section]:
    if not comparison.paper and not answer.study.notes:
        return
    figures = list(chart)
    if comparison.paper:
        figures += [paper_table(comparison.paper), _note("paper")]
    if answer.study.notes:
        figures.append(Section("Where the two differ", [Bullets(answer.study.notes)]))
    yield Section("Beside the paper", figures)


def _validity(comparison: PlacementComparison, chart: Sequence[Block]) -> Iterator[Block]:
    validity: ResultValidity = comparison.validity
    kept = all(late.within for late in validity.deadline_overrun)
    verdict = _WORDS["tables"]["overrun kept"] if kept else _WORDS["tables"]["overrun passed"]
    emulated = f" {verdict}" if validity.deadline_overrun else ""
    yield Text(f"{validity.valid} of {validity.runs} runs are valid.{emulated}")
    yield from chart
    yield Section("Noise", [noise_table(validity, comparison.colours), _note("noise")])
    if validity.deadline_overrun:
        yield Section("Deadline overrun", [overrun_table(validity, comparison.colours), _note("overrun")])
    if validity.placed:
        proof: list[Block] = [placement_proof_table(validity, comparison.colours), _note("proof")]
        yield Section("Proof of placement, and what was in memory", proof)
    left_out = [
        f"{run.placement}, repeat {run.repeat} (run {run.order}): {run.status}"
        + (f" – {'; '.join(run.problems)}" if run.problems else "")
        for run in validity.left_out
    ]
    if left_out:
        yield Section("Runs left out", [Bullets(left_out)])


def _sweep(sweep: SweepResult, answer: StudyAnswer, identity: str) -> Section:
    charts = [
        replace(figure, caption=_WORDS["charts"]["levels" if name == "levels" else "ratios"])
        for name, figure in sweep_figures(sweep, answer.study.baseline).items()
    ]
    rows = paper_sweep_rows(sweep, answer.figures_along(sweep), answer.study)
    paper = [Section(f"Beside the paper: ratios to {rows[0].base}", [paper_table(rows)])] if rows else []
    note = _note("judged" if sweep.judged else "not judged")
    return Section(sweep.label, [*sweep_blocks(sweep), *charts, *paper, note], id=identity)


def condition_blocks(conditions: StudyConditions) -> list[Block]:
    """Machine, versions, devices, order of the runs, settings of each engine."""
    facts = {name: "; ".join(values) for name, values in conditions.facts.items()}
    facts |= {f"Device {name}": what for name, what in conditions.devices.items()}
    first, last = (at.strftime(_STARTED) for at in (conditions.first_started_at, conditions.last_started_at))
    facts["Started"] = f"{first}; last run {last}"
    settings: list[Block] = []
    for setting in conditions.settings:
        varied = {name: "; ".join(values) for name, values in setting.varied.items()}
        common = {name: value or "(empty)" for name, value in setting.common.items()}
        blocks: list[Block] = [Section("The same in every run", [FactList(common)])]
        if varied:
            blocks.insert(0, Section("Different between runs", [FactList(varied)]))
        title = f"All {len(common) + len(varied)} settings of {setting.engine}"
        settings.append(Section(title, blocks, folded=True))
    return [
        FactList(facts),
        Section("Order of runs", [Text(" · ".join(conditions.order))], folded=True),
        *settings,
    ]


def _note(name: str) -> Text:
    return Text(_WORDS["tables"][name], Tone.QUIET)


def _absent(what: str) -> list[Block]:
    return [Text(f"No valid run recorded {what}.", Tone.QUIET)]


_MOST_FINDINGS = 2
"""Maximum findings of one study in the table of contents."""


@dataclass(frozen=True)
class StudyChapter:
    """One study. ``problem`` says why it has no answer."""

    name: str
    question: str = ""
    answer: StudyAnswer | None = None
    problem: str = ""

    @property
    def summary(self) -> str:
        """Its entry in the table of contents: its findings, or why there are none."""
        if self.answer is None:
            return self.problem
        if self.answer.of_faults:
            return self.answer.headline
        sentences = [
            f"{comparison.words.finding} {comparison.words.others}".strip()
            for comparison in self.answer.comparisons
        ]
        findings = list(dict.fromkeys(sentences))
        more = len(findings) - _MOST_FINDINGS
        tail = [f"{more} more below."] if more > 0 else []
        return " ".join([*findings[:_MOST_FINDINGS], *tail])


def combined_studies_page(chapters: Sequence[StudyChapter]) -> Page:
    """One page with a table of contents and a section for each study, with its chief figures."""
    ids = [f"study{number}" for number in range(1, len(chapters) + 1)]
    contents = [f"{chapter.name}: {chapter.question} {chapter.summary}" for chapter in chapters]
    count = numbers.counted_noun(len(chapters), "study", "studies")
    return Page(
        title="all studies",
        header=[Text(count, Tone.HEADLINE), Bullets(contents, ids)],
        body=[_section(chapter, name) for chapter, name in zip(chapters, ids, strict=True)],
        footer=FOOTER,
    )


def _section(chapter: StudyChapter, name: str) -> Section:
    title = chapter.question or chapter.name
    answer = chapter.answer
    if answer is None:
        reason = Text(f"No answer: {chapter.problem}", Tone.WARNING)
        return Section(title, [reason], id=name, label=chapter.name)
    single = answer.comparisons[0].words if len(answer.comparisons) == 1 else None
    headline = [Text(single.title, Tone.HEADLINE), *finding_blocks(single)] if single else []
    conditions = Section("Conditions", condition_blocks(answer.conditions), folded=True)
    blocks = [
        *paragraphs(answer.notes, Tone.WARNING),
        *headline,
        *study_answer_sections(answer, f"{name}-", brief=True),
        conditions,
    ]
    return Section(title, blocks, id=name, label=chapter.name)
