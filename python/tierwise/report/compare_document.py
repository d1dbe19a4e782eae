"""A comparison of two sets as Markdown, CSV, JSON or HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence

from tierwise.model.statistics import Interval
from tierwise.report import numbers
from tierwise.report.charts.pairs import described_pairs, pairs_chart
from tierwise.report.compare import Pair, SetComparison
from tierwise.report.compare_rows import Level, SetRow
from tierwise.report.page import drawing, environment

LEVELS: dict[Level, str] = {"run": "Whole run", "score": "Scores", "lap": "Laps", "role": "I/O by role"}
_CSV_COLUMNS = (
    "pair", "level", "name", "measure", "kind", "a", "a_low", "a_high", "a_bound", "a_repeats",
    "b", "b_low", "b_high", "b_bound", "b_repeats", "ratio", "ratio_low", "ratio_high", "ratio_bound",
    "verdict",
)  # fmt: skip


def to_markdown(found: SetComparison) -> str:
    """Headings and tables, for a page or a ticket."""
    return "\n".join(_markdown(found)) + "\n"


def to_csv(found: SetComparison) -> str:
    """One line a figure, in seconds, bytes, shares of 1 and plain numbers; empty is not known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for pair in found.pairs:
        for row in pair.rows:
            ratio = _csv_interval(row.ratio)[:4]
            sides = [*_csv_interval(row.a), *_csv_interval(row.b)]
            writer.writerow(
                [pair.label, row.level, row.name, row.what, row.kind, *sides, *ratio, row.verdict]
            )
    return out.getvalue()


def to_json(found: SetComparison) -> str:
    """The whole comparison."""
    return found.model_dump_json(indent=2) + "\n"


def to_html(found: SetComparison) -> str:
    """One page that opens offline."""
    chart = pairs_chart(found)
    return (
        environment()
        .get_template("compare.html.j2")
        .render(
            found=found,
            levels=LEVELS,
            value=value_text,
            ratio=ratio_text,
            figure=drawing("compare", "speed", described_pairs(found), chart) if chart else None,
        )
    )


FORMATS: dict[str, Callable[[SetComparison], str]] = {
    "text": to_markdown,
    "md": to_markdown,
    "csv": to_csv,
    "json": to_json,
    "html": to_html,
}


def value_text(row: SetRow, interval: Interval | None) -> str:
    """An estimate with its interval, in the unit of the row."""
    if interval is None:
        return numbers.NONE
    figure = numbers.of_kind(row.kind)
    ends = numbers.kind_span(interval, row.kind)
    text = numbers.signed(interval, figure(interval.estimate))
    return f"{text} ({ends})" if ends and interval.low != interval.high else text


def ratio_text(row: SetRow) -> str:
    """B over A with its interval."""
    if row.ratio is None:
        return numbers.NONE
    ends = numbers.ratio_span(row.ratio)
    text = numbers.signed(row.ratio, numbers.ratio(row.ratio.estimate))
    return f"{text} ({ends})" if ends and row.ratio.low != row.ratio.high else text


def _markdown(found: SetComparison) -> Iterator[str]:
    yield f"# {found.a} against {found.b}\n"
    yield f"A is {found.a} ({found.runs[0]} valid runs), B is {found.b} ({found.runs[1]} valid runs).\n"
    yield f"{found.headline}\n"
    yield "## What differs in the conditions\n"
    if found.differences:
        rows = [[one.what, "; ".join(one.a), "; ".join(one.b)] for one in found.differences]
        yield from _table(["condition", "A", "B"], rows)
    else:
        yield "Nothing that was recorded."
    for pair in found.pairs:
        yield from _pair(pair)
    for one in found.unmatched:
        yield f"\nNot compared, {one}."
    yield (
        "\nMedians and ratios of medians with 95 % bootstrap intervals; a verdict needs 3 repeats on each "
        "side. ≥ and ≤ are bounds: a lap was stopped at the cap."
    )


def _pair(pair: Pair) -> Iterator[str]:
    yield f"\n## {pair.label or 'All runs'}"
    for level, title in LEVELS.items():
        rows = pair.of(level)
        if rows:
            yield f"\n### {title}\n"
            named = level in ("lap", "role")
            head = [level] if named else []
            cells = [[*([row.name] if named else []), row.title, *_cells(row)] for row in rows]
            yield from _table([*head, "figure", "A", "B", "B over A", "verdict"], cells)


def _cells(row: SetRow) -> list[str]:
    return [value_text(row, row.a), value_text(row, row.b), ratio_text(row), row.verdict]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _csv_interval(interval: Interval | None) -> list[object]:
    if interval is None:
        return ["", "", "", "", ""]
    low, high = ("" if end is None else end for end in (interval.low, interval.high))
    return [interval.estimate, low, high, interval.bound.value, interval.n]
