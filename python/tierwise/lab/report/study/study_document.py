"""The answer of a study, or the check of a workload, as a printed document; its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tierwise.lab.analysis.answer_sentences import AnswerSentences
from tierwise.lab.analysis.device_benchmark import DeviceBenchmark
from tierwise.lab.analysis.lap_comparison import LapCell, LapRow, shown_laps
from tierwise.lab.analysis.measures import measure_kind, measure_title
from tierwise.lab.analysis.paper_figures import PaperRow
from tierwise.lab.analysis.placement_rows import PlacementRow
from tierwise.lab.analysis.placement_summary import PERCENTILES, IoRow, PlacementSummary
from tierwise.lab.analysis.result_validity import ResultValidity
from tierwise.lab.analysis.study_answer import PlacementComparison, StudyAnswer
from tierwise.lab.analysis.study_conditions import HostRow
from tierwise.lab.analysis.sweeps import SweepLine, SweepPoint, SweepResult
from tierwise.lab.report.fault_report import death_blocks, frontier_blocks
from tierwise.model import numbers
from tierwise.model.statistics import BoundKind, Interval, RatioVerdict
from tierwise.report.document import (
    Block,
    Cell,
    Table,
    Text,
    Tone,
    empty_table,
    estimate_cell,
    figure_cell,
    paragraphs,
)
from tierwise.results.result_schema import WorkloadCheck

LAP_COLUMNS = (
    "elapsed", "times faster", "of slowest", "checksum", "resident before", "CPU", "log wait", "repeats",
)  # fmt: skip
_TONES = {RatioVerdict.FASTER: Tone.BETTER, RatioVerdict.SLOWER: Tone.WORSE}
_SLOWER = " ▲"
"""Mark after a figure that got significantly worse with more resources."""
_MOST_LINES = 60


def lap_table(laps: Sequence[LapRow], colours: Mapping[str, str]) -> Table:
    """One row for each lap under each placement."""
    laps_table = empty_table(["lap", "placement"], LAP_COLUMNS)
    for lap in laps:
        marks = ["cold"] * lap.cold + ["not part of the whole time"] * (not lap.timed)
        for cell in lap.cells:
            elapsed_s = cell.elapsed.estimate if cell.elapsed else None
            first = (Text("first move", Tone.BETTER),) if cell.placement == lap.first else ()
            problems = [Text(problem, Tone.WARNING) for problem in cell.problems]
            laps_table.add(
                Cell(lap.label, below=tuple(Text(mark, Tone.QUIET) for mark in marks)),
                Cell(cell.placement, below=first, colour=colours[cell.placement]),
                estimate_cell(cell.elapsed, numbers.seconds_text),
                baseline_speedup_cell(cell.speedup, cell.verdict),
                figure_cell(
                    elapsed_s / lap.slowest_s if elapsed_s and lap.slowest_s else None, numbers.percent_text
                ),
                checksum_cell(cell),
                figure_cell(cell.resident_share, numbers.percent_text),
                figure_cell(cell.medians.get("cpu"), numbers.seconds_text),
                figure_cell(cell.medians.get("log wait share"), numbers.percent_text),
                Cell(lap_outcomes_cell(cell), below=tuple(problems)),
            )
    return laps_table


def score_table(summaries: Sequence[PlacementSummary], colours: Mapping[str, str]) -> Table | None:
    """The scores of each placement; ``None`` if the workload has none."""
    names = list(dict.fromkeys(name for summary in summaries for name in summary.scores))
    if not names:
        return None
    scores = empty_table(["placement"], [measure_title(name).lower().replace(" ", "\n") for name in names])
    for summary in summaries:
        name = Cell(summary.placement, colour=colours[summary.placement])
        scores.add(
            name, *(estimate_cell(summary.scores.get(name), numbers.significant_text) for name in names)
        )
    return scores


def checksum_cell(cell: LapCell) -> str:
    """The checksums of a lap; if all are as expected, one with a tick."""
    if cell.expected is not None and cell.checksums == [cell.expected]:
        return f"{cell.expected} ✓"
    return ", ".join(map(str, cell.checksums)) or numbers.NONE


def lap_outcomes_cell(cell: LapCell) -> str:
    """Outcomes of the repeats of a lap."""
    counts = [(cell.ok, "ok"), (cell.capped, "capped"), (cell.failed, "failed")]
    return ", ".join(f"{number} {how}" for number, how in counts if number)


def sweep_blocks(sweep: SweepResult, title: str = "") -> list[Block]:
    """Every line over the values of the setting, then the points slower with more resources.

    If there are very many laps, only those with such points.
    """
    sweep_table = empty_table([sweep.plain_name], sweep.values, title)
    many = len(sweep.lines) > _MOST_LINES
    for line in sweep.lines:
        if many and line.lap and not line.anomalies:
            continue
        sweep_table.add(line.label, *(_point(line, point) for point in line.points))
    return [sweep_table, *(Text(f"Anomaly: {anomaly}", Tone.WARNING) for anomaly in sweep.anomalies)]


def _level_text(line: SweepLine, point: SweepPoint) -> str:
    """The figure of one point, in the unit of its line."""
    if point.level is None:
        return numbers.NONE
    shown = numbers.formatter_of("seconds" if line.is_time else "score")
    return numbers.with_bound_sign(point.level, shown(point.level.estimate))


def baseline_speedup_cell(interval: Interval | None, verdict: RatioVerdict) -> Cell:
    """A ratio to the baseline with its interval, in the tone of what it proves."""
    if interval is None:
        return Cell(numbers.NONE)
    cell = replace(estimate_cell(interval, numbers.ratio_text), tone=_TONES.get(verdict, Tone.PLAIN))
    if verdict is not RatioVerdict.NO_DIFFERENCE:
        return cell
    return replace(cell, below=(*cell.below, Text("no difference", Tone.WARNING)))


def _point(line: SweepLine, point: SweepPoint) -> Cell:
    slower = point.slower_than is not None
    value = point.level.estimate if point.level else None
    tone = Tone.WARNING if slower else Tone.PLAIN
    than = (Text(f"worse than {point.slower_than}", Tone.QUIET),) if slower else ()
    return Cell(_level_text(line, point) + _SLOWER * slower, tone, below=than, value=value)


Colours = Mapping[str, str]
"""Placement -> name of its colour."""


def latency_table(summaries: Sequence[PlacementSummary], colours: Colours) -> Table:
    """Percentiles of each transaction; medians over the valid runs."""
    latencies = empty_table(["placement", "transaction"], PERCENTILES)
    for summary in summaries:
        for name, spreads in summary.latency.items():
            cells = (figure_cell(spreads[key].median, numbers.latency_text) for key in PERCENTILES)
            latencies.add(_placement(summary.placement, colours), name.replace("_", " "), *cells)
    return latencies


def counter_table(
    columns: Sequence[PlacementSummary] | Sequence[LapCell], names: Sequence[str], title: str = ""
) -> Table:
    """Counters of whole runs or of one lap, one column per placement; no row for what none has."""
    counters = empty_table(["counter"], [column.placement for column in columns], title)
    for name in (name for name in names if any(name in column.medians for column in columns)):
        shown = numbers.formatter_of(measure_kind(name))
        counters.add(
            measure_title(name), *(figure_cell(column.medians.get(name), shown) for column in columns)
        )
    return counters


def paper_table(rows: Sequence[PaperRow]) -> Table:
    """A paper's figures beside ours."""
    figures = ["paper", "here", "paper’s ratio", "our ratio", "ours over theirs"]
    papers = empty_table(["figure", "placement"], figures, after=["source"])
    for row in rows:
        setting = "".join(f" {key} {value}" for key, value in row.setting.items())
        papers.add(
            row.label + setting,
            row.placement,
            Cell(f"{numbers.paper_figure_text(row.paper_value)} {row.unit}", value=row.paper_value),
            _bounded(row.our_value, row.our_bound, numbers.significant_text, f" {row.unit}"),
            figure_cell(row.paper_ratio or None, numbers.ratio_text),
            _bounded(row.our_ratio or None, row.ratio_bound, numbers.ratio_text),
            figure_cell(row.agreement or None, numbers.ratio_text),
            row.source,
        )
    return papers


def _bounded(value: float | None, bound: BoundKind, shown: Callable[[float], str], unit: str = "") -> Cell:
    return figure_cell(value, lambda known: numbers.with_sign_of_bound(bound, shown(known)) + unit)


def noise_table(validity: ResultValidity, colours: Colours) -> Table:
    """Spread of the runs of each placement, and possible disturbances."""
    shown = empty_table(
        ["placement"], ["valid runs", "variation", "median deviation", "foreign CPU", "errors"]
    )
    for row in validity.noise:
        shown.add(
            _placement(row.placement, colours),
            figure_cell(row.runs, numbers.count_text),
            figure_cell(row.variation, numbers.percent_text),
            figure_cell(row.deviation, numbers.percent_text),
            figure_cell(row.foreign_cpu_share, numbers.percent_text),
            figure_cell(row.errors, numbers.count_text),
        )
    return shown


def overrun_table(validity: ResultValidity, colours: Colours) -> Table:
    """Deadline overrun of each emulated device, in its worst run."""
    shown = empty_table(["placement", "device"], ["p50", "p99", "max", "share of run", "bound"])
    for row in validity.deadline_overrun:
        share = Cell(
            numbers.percent_text(row.share), Tone.PLAIN if row.within else Tone.WORSE, value=row.share
        )
        shown.add(
            _placement(row.placement, colours),
            row.device,
            *(figure_cell(one_us, numbers.latency_text) for one_us in (row.p50_us, row.p99_us, row.max_us)),
            share,
            figure_cell(row.bound_share, numbers.percent_text),
        )
    return shown


def placement_proof_table(validity: ResultValidity, colours: Colours) -> Table:
    """Share of each role's bytes on its device, files seen elsewhere, and share in memory at the start."""
    figures = ["reached it", "engine wrote", "share", "files", "resident before"]
    shown = empty_table(["placement", "role", "device", "elsewhere"], figures)
    for role_proof in validity.placed:
        shown.add(
            _placement(role_proof.placement, colours),
            role_proof.role.value,
            role_proof.device,
            Cell(", ".join(role_proof.strays) or "none", Tone.WORSE if role_proof.strays else Tone.PLAIN),
            figure_cell(role_proof.reached_bytes, numbers.size_text),
            figure_cell(role_proof.written_bytes, numbers.size_text),
            figure_cell(role_proof.share, numbers.percent_text),
            figure_cell(role_proof.files, numbers.count_text),
            figure_cell(role_proof.resident_share, numbers.percent_text),
        )
    return shown


def _placement(name: str, colours: Colours) -> Cell:
    return Cell(name, colour=colours[name])


def host_table(hosts: Sequence[HostRow]) -> Table:
    """Blocks, relative time and speed-ups of each host."""
    placements = list(dict.fromkeys(name for host in hosts for name in host.speedups))
    shown = empty_table(["host"], ["blocks", "time of\nall hosts", *placements])
    for host in hosts:
        shown.add(
            host.host,
            figure_cell(host.blocks, numbers.count_text),
            _ratio(host.cost, host.cost_differs),
            *(_ratio(host.speedups.get(name), name in host.differing) for name in placements),
        )
    return shown


def _ratio(value: float | None, differs: bool) -> Cell:
    if value is None:
        return Cell(numbers.NONE)
    return Cell(numbers.ratio_text(value), Tone.WORSE if differs else Tone.PLAIN, value=value)


_IO_COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "reads": ("reads", numbers.count_text),
    "mean_read_bytes": ("mean size", numbers.size_text),
    "writes": ("writes", numbers.count_text),
    "mean_write_bytes": ("mean size ", numbers.size_text),
    "flushes": ("flushes", numbers.count_text),
    "read_bytes": ("read", numbers.size_text),
    "write_bytes": ("written", numbers.size_text),
    "busy_share": ("busy", numbers.percent_text),
    "queue_depth": ("queue depth", lambda depth: numbers.significant_text(depth, 2)),
} | {
    f"{kind}_{percentile}_us": (f"{kind} {percentile}", numbers.latency_text)
    for kind in ("read", "write", "flush")
    for percentile in ("p50", "p99")
}
"""Field of a row -> its column and its format, in the order of the table."""


def io_table(rows: Mapping[str, Sequence[IoRow]], colours: Mapping[str, str]) -> Table:
    """Requests of each role, then of whole shared devices, by placement; medians over the valid runs."""
    ios = empty_table(["placement", "role", "device"], [name for name, _ in _IO_COLUMNS.values()])
    for placement, several in rows.items():
        for row in several:
            cells = (figure_cell(getattr(row, field), shown) for field, (_, shown) in _IO_COLUMNS.items())
            ios.add(Cell(placement, colour=colours[placement]), row.name, row.device, *cells)
    return ios


def workload_check_document(workload_check: WorkloadCheck) -> list[Block]:
    """The file, then a row for each check."""
    rows = empty_table(["state", "detail"], [], names=["check"])
    for tried in workload_check.checks:
        state = Cell("FAILED", Tone.WORSE) if tried.problem else Cell("ok", Tone.BETTER)
        rows.add(tried.name, state, tried.problem or tried.note)
    return [Text(f"{workload_check.file}: {workload_check.summary}"), rows]


_LAP_COLUMNS = ("lap", "placement", "elapsed", "times faster", "checksum", "repeats")


def study_answer_document(answer: StudyAnswer) -> list[Block]:
    """The whole answer: for each comparison its table, then the headline and the caveats."""
    if answer.of_faults:
        return [
            *fault_blocks(answer),
            Text(answer.headline, Tone.HEADLINE),
            *paragraphs(answer.notes, Tone.WARNING),
        ]
    blocks = [
        block
        for comparison in answer.comparisons
        for block in _comparison(comparison, len(answer.comparisons) > 1)
    ]
    blocks += [block for sweep in answer.sweeps for block in sweep_blocks(sweep, sweep.label)]
    return [*blocks, *paragraphs(answer.notes, Tone.WARNING)]


def fault_blocks(answer: StudyAnswer) -> list[Block]:
    """Of a study of power cuts or of deaths: charts, tables and sentences."""
    return [*frontier_blocks(answer.power_cuts, answer.study.baseline), *death_blocks(answer.device_deaths)]


def comparison_table(comparison: PlacementComparison, priced: bool = False) -> Table:
    """One row for each placement; intervals are below their estimates, so that 80 columns suffice.

    With what each costs a month if ``priced``.
    """
    cells = [_figures(row, comparison, priced) for row in comparison.rows]
    comparisons = empty_table(["placement"], list(cells[0]))
    for row, figures in zip(comparison.rows, cells, strict=True):
        name = Cell(row.placement, below=_remark(row, comparison), colour=comparison.colours[row.placement])
        comparisons.add(name, *figures.values())
    return comparisons


def _figures(row: PlacementRow, comparison: PlacementComparison, priced: bool) -> dict[str, Cell]:
    """Column -> cell. Runs of fixed duration have no time worth showing."""
    summary = row.summary
    ratio = baseline_speedup_cell(row.speedup, row.verdict)
    by_time = comparison.measure == "elapsed"
    if by_time:
        figures = {
            "elapsed": estimate_cell(summary.elapsed, numbers.seconds_text),
            "times\nfaster": ratio,
            "rate": _alone(summary.rate, lambda rate: f"{numbers.significant_text(rate)}/s"),
        }
    else:
        rate = estimate_cell(summary.rate, numbers.significant_text)
        figures = {"transactions\na second": rate, "times\nthe rate": ratio}
    figures["p99\nlatency"] = _alone(summary.p99_us, numbers.latency_text)
    figures["log\nwait"] = _alone(summary.log_wait_share, numbers.percent_text)
    if by_time:
        figures["without\nlog wait"] = _alone(summary.projection_s, numbers.seconds_text)
    if priced:
        figures["cost a\nmonth"] = figure_cell(row.cost_per_month, numbers.usd_text)
    return figures | {"runs": _runs(row)}


def _alone(interval: Interval | None, shown: Callable[[float], str]) -> Cell:
    """An estimate without its interval."""
    return figure_cell(interval.estimate if interval else None, shown)


def benchmark_table(benchmark: DeviceBenchmark, colours: Mapping[str, str]) -> Table:
    """One row for each pattern on each device."""
    benchmarks = empty_table(["pattern", "device"], ["MB/s", "requests/s", "p50\nlatency", "p99\nlatency"])
    for row in benchmark.rows:
        benchmarks.add(
            row.title,
            Cell(row.placement, colour=colours[row.placement]),
            estimate_cell(row.mb_per_s, numbers.significant_text),
            estimate_cell(row.rate, numbers.significant_text),
            figure_cell(row.p50_us, numbers.latency_text),
            figure_cell(row.p99_us, numbers.latency_text),
        )
    return benchmarks


def _comparison(comparison: PlacementComparison, labelled: bool) -> list[Block]:
    title: list[Block] = [Text(comparison.label, Tone.HEADLINE)] if labelled else []
    text = _words(comparison.words)
    if comparison.benchmark:
        return [*title, benchmark_table(comparison.benchmark, comparison.colours), *text]
    hosts = [host_table(comparison.hosts)] if comparison.hosts else []
    if not comparison.laps:
        return [*title, comparison_table(comparison), *hosts, *text]
    laps = lap_table(shown_laps(comparison.laps), comparison.colours).only(*_LAP_COLUMNS)
    scores = score_table([row.summary for row in comparison.rows], comparison.colours)
    tables = [laps, *([scores] if scores else []), comparison_table(comparison), *hosts]
    return [*title, *_left_out(comparison), *tables, *text, *map(Text, comparison.words.laps)]


def _words(words: AnswerSentences) -> list[Block]:
    """The finding, its reasons, the advice, and the caveats."""
    return [
        *paragraphs([words.finding], Tone.HEADLINE),
        *paragraphs([reason_sentences(words)]),
        *paragraphs([words.advice], Tone.HEADLINE),
        *paragraphs([words.price]),
        *paragraphs(words.caveats, Tone.WARNING),
    ]


def reason_sentences(words: AnswerSentences) -> str:
    """The other placements, and the breakdown of time."""
    return " ".join(part for part in (words.others, words.evidence) if part)


def _left_out(comparison: PlacementComparison) -> list[Block]:
    """A note that some laps are only in the report."""
    hidden = len(comparison.laps) - len(shown_laps(comparison.laps))
    return [Text(f"{hidden} laps of further streams are in the report", Tone.QUIET)] if hidden else []


def _remark(row: PlacementRow, comparison: PlacementComparison) -> tuple[Text, ...]:
    if row.is_baseline:
        return (Text("baseline", Tone.QUIET),)
    return (Text("first move", Tone.BETTER),) if row.placement == comparison.first else ()


def _runs(row: PlacementRow) -> Cell:
    summary = row.summary
    counts = [(summary.ok, "valid"), (summary.invalid, "invalid"), (summary.failed, "failed")]
    return Cell("\n".join(f"{n} {status}" for n, status in counts if n or status == "valid"))
