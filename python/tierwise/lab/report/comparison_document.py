"""A comparison of two sets as a document, as a page, and as one table for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tierwise.lab.analysis.results_comparison import Level, PlacementPair, ResultsComparison, ResultsRow
from tierwise.lab.report.charts.study_charts import results_pairs_figure
from tierwise.model import numbers
from tierwise.model.statistics import Interval
from tierwise.report import document as doc
from tierwise.report.render.text import csv_text

LEVELS: dict[Level, str] = {"run": "Whole run", "score": "Scores", "lap": "Laps", "role": "I/O by role"}
_HOW = (
    "Medians and ratios of medians with 95\u00a0% bootstrap intervals; a verdict needs 3 repeats on each "
    "side. ≥ and ≤ are bounds: a lap was stopped at the cap. Totals of unequal work, as of "
    "runs of a fixed duration, have no ratio."
)
_CSV_COLUMNS = (
    "pair", "level", "name", "measure", "kind", "a", "a_low", "a_high", "a_bound", "a_repeats",
    "b", "b_low", "b_high", "b_bound", "b_repeats", "ratio", "ratio_low", "ratio_high", "ratio_bound",
    "verdict",
)  # fmt: skip


def compare_document(comparison: ResultsComparison) -> list[doc.Block]:
    """The answer, the conditions that differ, and every figure of both sets."""
    return [*_answer(comparison), *_evidence(comparison), doc.Text(_HOW, doc.Tone.QUIET)]


def compare_page(comparison: ResultsComparison) -> doc.Page:
    """The comparison with its chart, as a page for one file."""
    figure = results_pairs_figure(comparison)
    caption = "An interval that reaches the dotted line at 1× shows no significant difference."
    chart = [doc.Section("B against A", [replace(figure, caption=caption)])] if figure else []
    return doc.Page(
        title=f"{comparison.a} against {comparison.b}",
        header=_answer(comparison),
        body=[doc.Section("", [*chart, *_evidence(comparison)], id="compare")],
        footer=_HOW,
    )


def to_csv(comparison: ResultsComparison) -> str:
    """One line per figure, in seconds, bytes, shares of 1 and plain numbers; empty if unknown."""
    rows: list[Sequence[object]] = [_CSV_COLUMNS]
    for pair in comparison.pairs:
        for row in pair.rows:
            ratio = _csv_interval(row.ratio)[:4]
            sides = [*_csv_interval(row.a), *_csv_interval(row.b)]
            rows.append([pair.label, row.level, row.name, row.what, row.kind, *sides, *ratio, row.verdict])
    return csv_text(rows)


def _answer(comparison: ResultsComparison) -> list[doc.Block]:
    return [
        doc.Text(f"{comparison.a} against {comparison.b}", doc.Tone.HEADLINE),
        doc.Text(
            f"A is {comparison.a} ({comparison.runs[0]} valid runs), "
            f"B is {comparison.b} ({comparison.runs[1]} valid runs)."
        ),
        doc.Text(comparison.headline, doc.Tone.HEADLINE),
        *doc.paragraphs([f"Not compared, {text}." for text in comparison.unmatched], doc.Tone.WARNING),
    ]


def _evidence(comparison: ResultsComparison) -> Iterator[doc.Section]:
    conditions = doc.empty_table(["condition", "A", "B"], [])
    for difference in comparison.differences:
        conditions.add(difference.what, "; ".join(difference.a), "; ".join(difference.b))
    nothing = doc.Text("Nothing that was recorded.", doc.Tone.QUIET)
    yield doc.Section("What differs in the conditions", [conditions if comparison.differences else nothing])
    for pair in comparison.pairs:
        levels = [_table(pair, level) for level in LEVELS if pair.of(level)]
        yield doc.Section(pair.label or "All runs", levels)


def _table(pair: PlacementPair, level: Level) -> doc.Table:
    named = level in ("lap", "role")
    words = [*([level] if named else []), "figure"]
    rows = doc.empty_table(words, ["A", "B", "B over A"], LEVELS[level], after=["verdict"])
    for row in pair.of(level):
        ratio = doc.estimate_cell(row.ratio, numbers.ratio_text)
        cells = [_value(row, row.a), _value(row, row.b), ratio, doc.Cell(row.verdict)]
        rows.add(*([row.name] if named else []), row.title, *cells)
    return rows


def _value(row: ResultsRow, interval: Interval | None) -> doc.Cell:
    return doc.estimate_cell(interval, numbers.formatter_of(row.kind))


def _csv_interval(interval: Interval | None) -> list[object]:
    if interval is None:
        return ["", "", "", "", ""]
    low, high = ("" if end is None else end for end in (interval.low, interval.high))
    return [interval.estimate, low, high, interval.bound.value, interval.n]
