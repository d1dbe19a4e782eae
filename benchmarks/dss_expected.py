"""Whether an engine answers the 22 queries as published, at scale factor 1 with the validation parameters."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

_CENT = Decimal("0.01")


def problems(query: int, rows: Sequence[Sequence[object]]) -> list[str]:
    """Differences of an answer from the published one; none if it is correct.

    The number of rows, the first and the last row, and each column's sum are compared. Numbers may differ by
    the rounding to two decimals, averages by one per cent (TPC-H specification, clause 2.1.3.5).

    Args:
        query: 1 to 22.
        rows: the answer, in the query's order.
    """
    published = _published()[f"q{query}"]
    if len(rows) != published["rows"]:
        return [f"q{query}: {len(rows)} rows for {published['rows']}"]
    relative = Decimal(str(published.get("relative", 0)))
    by_kind = {
        "first row": (rows[0], published["first"], 1),
        "last row": (rows[-1], published["last"], 1),
        "sum": (_sums(rows), published["sums"], len(rows)),
    }
    return [
        f"q{query}: {name}, column {column}: {ours_value} for {other}"
        for name, (ours, theirs, count) in by_kind.items()
        for column, ours_value, other in _different(ours, theirs, relative, count)
    ]


@cache
def _published() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("dss-answers.toml").read_text("utf-8"))


def _different(
    ours: Sequence[object], theirs: Sequence[str], relative: Decimal, count: int
) -> Iterator[tuple[int, object, str]]:
    """Columns, from 1, that differ by more than rounding ``count`` numbers; ``""`` stands for no sum."""
    for column, (our_value, other) in enumerate(zip(ours, theirs, strict=True), 1):
        number, expected = _number(our_value), _number(other)
        if number is None or expected is None:
            same = other in ("", str(our_value).strip())
        else:
            same = abs(number - expected) <= max(_CENT * count, abs(expected) * relative)
        if not same:
            yield column, our_value, other


def _sums(rows: Sequence[Sequence[object]]) -> list[Decimal | None]:
    return [_sum([_number(value) for value in column]) for column in zip(*rows, strict=True)]


def _sum(numbers: list[Decimal | None]) -> Decimal | None:
    known = [number for number in numbers if number is not None]
    return sum(known, Decimal(0)) if len(known) == len(numbers) else None


def _number(value: object) -> Decimal | None:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None
