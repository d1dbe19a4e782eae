"""An answer for a terminal, as renderables of rich."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tierwise.report import numbers
from tierwise.report.answer import Answer, Comparison
from tierwise.report.benchmark import Benchmark
from tierwise.report.lap_tables import estimate, lap_table, score_table, speedup_text, sweep_parts
from tierwise.report.laps import chief_laps
from tierwise.report.page import unfinished
from tierwise.report.rows import Row
from tierwise.report.sentences import Words

_COLUMNS = ("elapsed", "times\nfaster", "rate", "p99\nlatency", "log\nwait", "without\nlog wait", "runs")


def answer_tables(answer: Answer) -> list[Table | Text]:
    """The whole answer: for each comparison its table, then the headline and the caveats."""
    parts = [part for one in answer.comparisons for part in _comparison(one, len(answer.comparisons) > 1)]
    sweeps = [part for one in answer.sweeps for part in sweep_parts(one)]
    skipped = [f"Not run: {name}: {reason}" for name, reason in answer.study.skipped.items()]
    notes = [note for note in [*skipped, unfinished(answer)] if note]
    return [*parts, *sweeps, *(Text(note, style="yellow") for note in notes)]


def comparison_table(comparison: Comparison) -> Table:
    """One row for each placement; intervals stand below their estimates, so that 80 columns suffice."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("placement", overflow="fold")
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True, vertical="top")
    for row in comparison.rows:
        table.add_row(*_cells(row, comparison))
    return table


def benchmark_table(benchmark: Benchmark) -> Table:
    """One row for each pattern on each device."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("pattern", "device"):
        table.add_column(name, overflow="fold")
    for name in ("MB/s", "requests/s", "p50\nlatency", "p99\nlatency"):
        table.add_column(name, justify="right", no_wrap=True, vertical="top")
    for row in benchmark.rows:
        table.add_row(
            row.title,
            row.placement,
            estimate(row.mb_per_s, numbers.significant, numbers.number_span),
            estimate(row.rate, numbers.significant, numbers.number_span),
            numbers.microseconds(row.p50_us),
            numbers.microseconds(row.p99_us),
        )
    return table


def _comparison(comparison: Comparison, labelled: bool) -> list[Table | Text]:
    words = comparison.words
    sentences = " ".join(part for part in (words.others, words.evidence) if part)
    text = Text.assemble("\n", (words.finding, "bold"), f" {sentences}" if sentences else "")
    if words.advice:
        text.append(f"\n{words.advice}", style="bold")
    for caveat in words.caveats:
        text.append(f"\n{caveat}", style="yellow")
    title = [Text(f"\n{comparison.label}", style="bold")] if labelled else []
    if comparison.benchmark:
        return [*title, benchmark_table(comparison.benchmark), text]
    if not comparison.laps:
        return [*title, comparison_table(comparison), text]
    scores = score_table([row.summary for row in comparison.rows])
    tables: list[Table | Text] = [lap_table(comparison.laps), Text()]
    tables += [scores, Text()] if scores else []
    return [*title, *_left_out(comparison), *tables, comparison_table(comparison), text, *_laps(words)]


def _laps(words: Words) -> list[Text]:
    """Which placement helps which lap."""
    return [Text(sentence) for sentence in words.laps]


def _left_out(comparison: Comparison) -> list[Text]:
    """That some laps are only in the report."""
    hidden = len(comparison.laps) - len(chief_laps(comparison.laps))
    return [Text(f"{hidden} laps of further streams are in the report", style="dim")] if hidden else []


def _cells(row: Row, comparison: Comparison) -> list[Text]:
    summary = row.summary
    return [
        Text.assemble(row.placement, _note(row, comparison)),
        estimate(summary.elapsed, numbers.seconds, numbers.seconds_span),
        speedup_text(row.speedup, row.verdict),
        Text(f"{numbers.significant(summary.rate.estimate)}/s" if summary.rate else numbers.NONE),
        Text(numbers.microseconds(summary.p99_us.estimate if summary.p99_us else None)),
        Text(numbers.percent(summary.log_wait_share.estimate if summary.log_wait_share else None)),
        Text(numbers.seconds(summary.projection_s.estimate if summary.projection_s else None)),
        _runs(row),
    ]


def _note(row: Row, comparison: Comparison) -> tuple[str, str]:
    if row.is_baseline:
        return "\nbaseline", "dim"
    return ("\nfirst move", "green") if row.placement == comparison.first else ("", "")


def _runs(row: Row) -> Text:
    summary = row.summary
    counts = [(summary.ok, "valid"), (summary.invalid, "invalid"), (summary.failed, "failed")]
    return Text("\n".join(f"{n} {status}" for n, status in counts if n or status == "valid"))
