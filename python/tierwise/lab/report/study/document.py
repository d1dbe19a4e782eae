"""The answer of a study, or the check of a workload, as a printed document."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tierwise.lab.analysis.answer import Answer, Comparison
from tierwise.lab.analysis.benchmark import Benchmark
from tierwise.lab.analysis.laps import chief_laps
from tierwise.lab.analysis.rows import Row
from tierwise.lab.analysis.sentences import Words
from tierwise.lab.report.durability import death_blocks, frontier_blocks
from tierwise.lab.report.study.tables import host_table, lap_table, score_table, speedup, sweep_blocks
from tierwise.model import numbers
from tierwise.model.statistics import Interval
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, figure, table, texts
from tierwise.results.records import WorkloadCheck


def check_document(workload_check: WorkloadCheck) -> list[Block]:
    """The file, then a row for each check."""
    rows = table(["state", "detail"], [], names=["check"])
    for tried in workload_check.checks:
        state = Cell("FAILED", Tone.WORSE) if tried.problem else Cell("ok", Tone.BETTER)
        rows.add(tried.name, state, tried.problem or tried.note)
    return [Text(f"{workload_check.file}: {workload_check.summary}"), rows]


_LAP_COLUMNS = ("lap", "placement", "elapsed", "times faster", "checksum", "repeats")


def answer_document(answer: Answer) -> list[Block]:
    """The whole answer: for each comparison its table, then the headline and the caveats."""
    if answer.of_faults:
        return [
            *fault_blocks(answer),
            Text(answer.headline, Tone.HEADLINE),
            *texts(answer.notes, Tone.WARNING),
        ]
    blocks = [
        block
        for comparison in answer.comparisons
        for block in _comparison(comparison, len(answer.comparisons) > 1)
    ]
    blocks += [block for sweep in answer.sweeps for block in sweep_blocks(sweep, sweep.label)]
    return [*blocks, *texts(answer.notes, Tone.WARNING)]


def fault_blocks(answer: Answer) -> list[Block]:
    """Of a study of power cuts or of deaths: charts, tables and sentences."""
    return [*frontier_blocks(answer.power_cuts, answer.study.baseline), *death_blocks(answer.device_deaths)]


def comparison_table(comparison: Comparison, priced: bool = False) -> Table:
    """One row for each placement; intervals are below their estimates, so that 80 columns suffice.

    With what each costs a month if ``priced``.
    """
    cells = [_figures(row, comparison, priced) for row in comparison.rows]
    comparisons = table(["placement"], list(cells[0]))
    for row, figures in zip(comparison.rows, cells, strict=True):
        name = Cell(row.placement, below=_remark(row, comparison), colour=comparison.colours[row.placement])
        comparisons.add(name, *figures.values())
    return comparisons


def _figures(row: Row, comparison: Comparison, priced: bool) -> dict[str, Cell]:
    """Column -> cell. Runs of fixed duration have no time worth showing."""
    summary = row.summary
    ratio = speedup(row.speedup, row.verdict)
    by_time = comparison.measure == "elapsed"
    if by_time:
        figures = {
            "elapsed": estimate(summary.elapsed, numbers.seconds),
            "times\nfaster": ratio,
            "rate": _alone(summary.rate, lambda rate: f"{numbers.significant(rate)}/s"),
        }
    else:
        rate = estimate(summary.rate, numbers.significant)
        figures = {"transactions\na second": rate, "times\nthe rate": ratio}
    figures["p99\nlatency"] = _alone(summary.p99_us, numbers.microseconds)
    figures["log\nwait"] = _alone(summary.log_wait_share, numbers.percent)
    if by_time:
        figures["without\nlog wait"] = _alone(summary.projection_s, numbers.seconds)
    if priced:
        figures["cost a\nmonth"] = figure(row.cost_per_month, numbers.usd)
    return figures | {"runs": _runs(row)}


def _alone(interval: Interval | None, shown: Callable[[float], str]) -> Cell:
    """An estimate without its interval."""
    return figure(interval.estimate if interval else None, shown)


def benchmark_table(benchmark: Benchmark, colours: Mapping[str, str]) -> Table:
    """One row for each pattern on each device."""
    benchmarks = table(["pattern", "device"], ["MB/s", "requests/s", "p50\nlatency", "p99\nlatency"])
    for row in benchmark.rows:
        benchmarks.add(
            row.title,
            Cell(row.placement, colour=colours[row.placement]),
            estimate(row.mb_per_s, numbers.significant),
            estimate(row.rate, numbers.significant),
            figure(row.p50_us, numbers.microseconds),
            figure(row.p99_us, numbers.microseconds),
        )
    return benchmarks


def _comparison(comparison: Comparison, labelled: bool) -> list[Block]:
    title: list[Block] = [Text(comparison.label, Tone.HEADLINE)] if labelled else []
    text = _words(comparison.words)
    if comparison.benchmark:
        return [*title, benchmark_table(comparison.benchmark, comparison.colours), *text]
    hosts = [host_table(comparison.hosts)] if comparison.hosts else []
    if not comparison.laps:
        return [*title, comparison_table(comparison), *hosts, *text]
    laps = lap_table(chief_laps(comparison.laps), comparison.colours).only(*_LAP_COLUMNS)
    scores = score_table([row.summary for row in comparison.rows], comparison.colours)
    tables = [laps, *([scores] if scores else []), comparison_table(comparison), *hosts]
    return [*title, *_left_out(comparison), *tables, *text, *map(Text, comparison.words.laps)]


def _words(words: Words) -> list[Block]:
    """The finding, its reasons, the advice, and the caveats."""
    return [
        *texts([words.finding], Tone.HEADLINE),
        *texts([reasons(words)]),
        *texts([words.advice], Tone.HEADLINE),
        *texts([words.price]),
        *texts(words.caveats, Tone.WARNING),
    ]


def reasons(words: Words) -> str:
    """The other placements, and the breakdown of time."""
    return " ".join(part for part in (words.others, words.evidence) if part)


def _left_out(comparison: Comparison) -> list[Block]:
    """A note that some laps are only in the report."""
    hidden = len(comparison.laps) - len(chief_laps(comparison.laps))
    return [Text(f"{hidden} laps of further streams are in the report", Tone.QUIET)] if hidden else []


def _remark(row: Row, comparison: Comparison) -> tuple[Text, ...]:
    if row.is_baseline:
        return (Text("baseline", Tone.QUIET),)
    return (Text("first move", Tone.BETTER),) if row.placement == comparison.first else ()


def _runs(row: Row) -> Cell:
    summary = row.summary
    counts = [(summary.ok, "valid"), (summary.invalid, "invalid"), (summary.failed, "failed")]
    return Cell("\n".join(f"{n} {status}" for n, status in counts if n or status == "valid"))
