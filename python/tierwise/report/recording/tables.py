"""Advice on tables and indexes, as a document."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise.tables import DeviceTables, TableAdvice, TableRow, TableSet
from tierwise.model.placement import Role
from tierwise.model.units import SYMBOLS
from tierwise.predict import RecordedRun
from tierwise.report import numbers
from tierwise.report.document import Block, Table, Text, Tone, estimate, figure, table
from tierwise.report.recording.money_words import cents, cost, price_texts
from tierwise.report.recording.prediction import warning_texts
from tierwise.report.recording.prediction_words import recorded_sentence
from tierwise.report.steps import guide, steps_texts

_MOST_ROWS = 60
_MOST_NAMES = 8
_MOST_PAGE_NAMES = 2
_ALL = 0.995
"""Share of a gain that is printed as all of it."""


def tables_document(advice: TableAdvice, run: RecordedRun) -> list[Block]:
    """The recommended tables and indexes, the other sets on each device, the steps and the warnings."""
    first, headline, *sets = advice.devices[0], *tables_blocks(advice)
    blocks: list[Block] = [headline, Text(recorded_sentence(run)), *sets]
    if first.recommended is not None:
        blocks += [Text(f"Move: {', '.join(first.recommended.names)}.")]
        blocks += steps_texts(guide(run.engine, {Role.SELECTED: first.device}))
    return [*blocks, *price_texts(advice.prices), *warning_texts(advice.warnings)]


def tables_blocks(advice: TableAdvice) -> list[Block]:
    """The recommended set, then a table of the sets on each device."""
    blocks: list[Block] = [Text(tables_headline(advice), Tone.HEADLINE)]
    for device in advice.devices:
        if device.sets:
            title = f"The best sets by size on {device.device}"
            blocks.append(sets_table([(device.device, each) for each in device.sets], advice, title=title))
        else:
            blocks.append(Text(f"No table or index that was used fits {device.device}."))
    return blocks


def tables_headline(advice: TableAdvice) -> str:
    """Which set to move to which device, what it gains and what it costs."""
    first = advice.devices[0]
    best = first.recommended
    if best is None or best.prediction.speedup is None:
        where = " or ".join(device.device for device in advice.devices)
        return f"Leave the tables where they are: no set of them on {where} can be told from that."
    size = f"{numbers.size(best.size_bytes)} of {numbers.size(advice.total_bytes)}"
    gain = numbers.ratio(best.prediction.speedup.value)
    most = max(table_set.gain for table_set in first.sets)
    share = numbers.percent(best.gain / most)
    kept = "" if best.gain >= _ALL * most else f", {share} of the gain of the fastest set"
    price = cost(best.bill.per_month, advice.currency)
    return f"Move {set_title(best)} ({size}) to {first.device}: {gain} times the throughput{kept}, {price}."


def sets_table(
    sets: Sequence[tuple[str, TableSet]], advice: TableAdvice, *, title: str, devices: bool = False
) -> Table:
    """Sets of tables with their gain and price.

    Args:
        sets: each with its device.
        advice: that they are of.
        title: of the table.
        devices: whether to name the device of each, and fewer tables.
    """
    unit = f"{SYMBOLS.get(advice.currency, advice.currency)}/month"
    figures = ["size", "times the\nthroughput", unit, "more/s", f"more/s\nper {unit}"]
    shown = table(["tables and indexes", *(["on"] if devices else [])], figures, title)
    recommended = {id(device.recommended) for device in advice.devices}
    for device, table_set in sets:
        mark = " (recommended)" if id(table_set) in recommended else ""
        shown.add(
            f"{_names(table_set, _MOST_PAGE_NAMES if devices else _MOST_NAMES)}{mark}",
            *([device] if devices else []),
            figure(table_set.size_bytes, numbers.size),
            estimate(table_set.prediction.speedup, numbers.ratio),
            figure(table_set.bill.per_month, cents),
            figure(table_set.gain_per_s, numbers.significant),
            "free" if not table_set.bill.per_month else figure(table_set.gain_per_cost, numbers.significant),
        )
    return shown


def page_sets(advice: TableAdvice) -> list[tuple[str, TableSet]]:
    """Every simulated set once with its device: the best by size, then those of one table."""
    return [(device.device, each) for device in advice.devices for each in _distinct(device)]


def listed(advice: TableAdvice | None) -> list[TableRow]:
    """The tables and indexes that a page lists."""
    return advice.rows[:_MOST_ROWS] if advice else []


def rows_table(advice: TableAdvice) -> Table:
    """The tables and indexes that were waited for longest, with what each gains at most."""
    figures = ["size", "reads", "writes", "share of waits", "gains at most"]
    shown = table(["table or index", "kind"], figures, "Waits by table and index")
    for row in listed(advice):
        shown.add(
            row.name,
            row.kind,
            figure(row.size_bytes, numbers.size),
            figure(row.reads, numbers.count),
            figure(row.writes, numbers.count),
            figure(row.wait_share, numbers.percent),
            estimate(row.at_most, lambda value: f"{numbers.ratio(value)} times"),
        )
    return shown


def set_title(table_set: TableSet) -> str:
    """``public.orders``, or ``3 tables and indexes``."""
    return table_set.names[0] if len(table_set.names) == 1 else f"{len(table_set.names)} tables and indexes"


def _distinct(device_tables: DeviceTables) -> list[TableSet]:
    by_names = {frozenset(each.names): each for each in [*device_tables.sets, *device_tables.alone][::-1]}
    return list(by_names.values())[::-1]


def _names(table_set: TableSet, most: int) -> str:
    more = len(table_set.names) - most
    return ", ".join(table_set.names[:most]) + (f" and {more} more" if more > 0 else "")
