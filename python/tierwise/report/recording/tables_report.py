"""Tables and indexes: which to move, and the traffic of each in a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.advise.table_advice import DeviceTableSets, TableAdvice, TableSet, TableUsage
from tierwise.model import numbers
from tierwise.model.names import group_by_key, printable
from tierwise.model.placement import Role
from tierwise.predict import Estimate, RecordedRun
from tierwise.predict.time_savings import MOST_RELATIONS, TimeSaving
from tierwise.recording.buffer_content import BufferContent
from tierwise.recording.relations import Kind, Relations, RelationTraffic
from tierwise.report.document import Block, Table, Text, Tone, empty_table, estimate_cell, figure_cell
from tierwise.report.move_steps import move_guide, steps_texts
from tierwise.report.recording.decision_words import budget_words, cost_words, price_source_texts
from tierwise.report.recording.prediction_report import (
    gain_words,
    lost_files_sentence,
    recorded_sentence,
    warning_texts,
)
from tierwise.results.measurements import StrictModel

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
        blocks += [Text(sentence) for sentence in moved_tables_sentences(first.recommended)]
        blocks += steps_texts(move_guide(run.engine, {Role.SELECTED: first.device}))
    return [*blocks, *price_source_texts(advice.prices), *warning_texts(advice.warnings)]


def moved_tables_sentences(moved: TableSet) -> list[str]:
    """What to move, and in which databases if it is not all in the one of the DSN."""
    sentences = [f"Move: {', '.join(map(printable, moved.names))}."]
    if not any(moved.databases):
        return sentences
    held = group_by_key(zip(moved.databases, moved.names, strict=True))
    return sentences + [
        f"Run the SQL in the database {printable(database) or 'that the DSN names'} for "
        f"{', '.join(map(printable, names))}."
        for database, names in held.items()
    ]


def tables_blocks(advice: TableAdvice) -> list[Block]:
    """The recommended set, what a restart loses of it, then a table of the sets on each device."""
    blocks: list[Block] = [Text(tables_headline(advice), Tone.HEADLINE)]
    if caution := tables_caution(advice):
        blocks.append(Text(caution, Tone.WARNING))
    for device in advice.devices:
        if device.sets:
            title = f"The best sets by size on {device.device}"
            blocks.append(
                table_sets_table([(device.device, each) for each in device.sets], advice, title=title)
            )
        elif device.lost_at_stop and not advice.rebuildable:
            why = f"Left out, since a stop of the machine takes all files: {device.device}."
            blocks.append(Text(f"{why} --rebuildable allows that of a database that can be rebuilt."))
        else:
            limit = budget_words(advice.budget_per_month, advice.currency)
            blocks.append(Text(f"No table or index that was used fits {device.device}{limit}."))
    return blocks


def tables_headline(advice: TableAdvice) -> str:
    """Which set to move to which device, what it gains and what it costs."""
    first = advice.devices[0]
    best = first.recommended
    if best is None or best.prediction.speedup is None:
        where = " or ".join(device.device for device in advice.devices)
        reason = f"no set of them on {where} can be told from that"
        if not any(device.sets for device in advice.devices):
            limit = budget_words(advice.budget_per_month, advice.currency)
            reason = f"none that was used fits {where}{limit}"
        return f"Leave the tables where they are: {reason}."
    size = f"{numbers.size_text(best.size_bytes)} of {numbers.size_text(advice.total_bytes)}"
    most = max(table_set.gain for table_set in first.sets)
    share = numbers.percent_text(best.gain / most)
    kept = "" if best.gain >= _ALL * most else f", {share} of the gain of the fastest set"
    price = cost_words(best.bill.per_month, advice.currency)
    gain = gain_words(best.prediction, interval=False)
    return f"Move {table_set_title(best)} ({size}) to {first.device}: {gain}{kept}, {price}."


def tables_caution(advice: TableAdvice) -> str:
    """That the recommended device keeps nothing after a stop; empty if it does, or without one."""
    first = advice.devices[0]
    return lost_files_sentence({Role.SELECTED: first.device}) if first.recommended else ""


def table_sets_table(
    sets: Sequence[tuple[str, TableSet]], advice: TableAdvice, *, title: str, devices: bool = False
) -> Table:
    """Sets of tables with their gain and price."""
    unit = numbers.per_month_unit(advice.currency)
    figures = ["size", "times the\nthroughput", unit, "more/s", f"more/s\nper {unit}"]
    shown = empty_table(["tables and indexes", *(["on"] if devices else [])], figures, title)
    recommended = {id(device.recommended) for device in advice.devices}
    for device, table_set in sets:
        mark = " (recommended)" if id(table_set) in recommended else ""
        shown.add(
            f"{_names(table_set, _MOST_PAGE_NAMES if devices else _MOST_NAMES)}{mark}",
            *([device] if devices else []),
            figure_cell(table_set.size_bytes, numbers.size_text),
            estimate_cell(table_set.prediction.speedup, numbers.ratio_text),
            figure_cell(table_set.bill.per_month, numbers.cents_text),
            figure_cell(table_set.gain_per_s, numbers.significant_text),
            "free"
            if not table_set.bill.per_month
            else figure_cell(table_set.gain_per_cost, numbers.significant_text),
        )
    return shown


def page_table_sets(advice: TableAdvice) -> list[tuple[str, TableSet]]:
    """Every simulated set once with its device: the best by size, then those of one table."""
    return [(device.device, each) for device in advice.devices for each in _distinct(device)]


def listed_relations(advice: TableAdvice | None) -> list[TableUsage]:
    """The tables and indexes that a page lists."""
    return advice.rows[:_MOST_ROWS] if advice else []


def waits_by_table(advice: TableAdvice) -> Table:
    """The tables and indexes that were waited for longest, with what each gains at most."""
    figures = ["size", "reads", "writes", "share of waits", "gains at most"]
    shown = empty_table(["table or index", "kind"], figures, "Waits by table and index")
    for row in listed_relations(advice):
        shown.add(
            printable(row.name),
            row.kind,
            figure_cell(row.size_bytes, numbers.size_text),
            figure_cell(row.reads, numbers.count_text),
            figure_cell(row.writes, numbers.count_text),
            figure_cell(row.wait_share, numbers.percent_text),
            estimate_cell(row.at_most, lambda value: f"{numbers.ratio_text(value)} times"),
        )
    return shown


def table_set_title(table_set: TableSet) -> str:
    """``public.orders``, or ``3 tables and indexes``."""
    names = table_set.names
    return printable(names[0]) if len(names) == 1 else f"{len(names)} tables and indexes"


def _distinct(device_tables: DeviceTableSets) -> list[TableSet]:
    by_names = {frozenset(each.names): each for each in [*device_tables.sets, *device_tables.alone][::-1]}
    return list(by_names.values())[::-1]


def _names(table_set: TableSet, most: int) -> str:
    more = len(table_set.names) - most
    return ", ".join(map(printable, table_set.names[:most])) + (f" and {more} more" if more > 0 else "")


_MOST_RELATIONS = 40


def relations_document(
    relations: Relations, saved: Mapping[str, TimeSaving], warnings: Sequence[str]
) -> list[Block]:
    """The tables and indexes that were waited for longest, and what removal of each would save at most."""
    used = [row for row in relations.rows if row.files]
    blocks: list[Block] = [Text(_headline(relations, used, saved), Tone.HEADLINE)]
    if buffer := relations.buffer:
        named = sum(row.buffered_bytes for row in relations.rows)
        held = (
            f"At the end, the engine's buffer of {numbers.size_text(buffer.bytes)} held "
            f"{numbers.size_text(named)} of "
            f"these tables and indexes and {numbers.size_text(max(buffer.used_bytes - named, 0))} of other "
            "files; "
            f"{numbers.size_text(buffer.bytes - buffer.used_bytes)} were unused."
        )
        blocks.append(Text(held))
    if used:
        buffered = relations.buffer is not None
        blocks.append(_relations_table(used[:_MOST_RELATIONS], saved, buffered=buffered))
    if len(used) > _MOST_RELATIONS:
        blocks.append(Text(f"Waited for less: {len(used) - _MOST_RELATIONS} more."))
    unused = [row for row in relations.rows if not row.files]
    if unused:
        size = numbers.size_text(sum(row.size_bytes for row in unused))
        names = numbers.counted_noun(len(unused), "table or index", "tables and indexes")
        blocks.append(Text(f"Not read or written: {names} ({size})."))
    if relations.unnamed:
        waited = numbers.seconds_text(sum(file.session_waited_s for file in relations.unnamed))
        unknown = "no file has a name: record with --dsn or --names-from-files, or give --names"
        why = "without a name" if relations.rows else unknown
        blocks.append(
            Text(f"{numbers.counted_noun(len(relations.unnamed), 'file')} ({waited} of waits): {why}.")
        )
    return [*blocks, *warning_texts(warnings)]


class BufferUse(StrictModel):
    """The engine's buffer when the recording ended."""

    size_bytes: int
    used_bytes: int


class RelationRow(StrictModel):
    """One table with its TOAST, or one index: what its files were asked for."""

    name: str
    """With its schema; with its database too, if that is another one than the DSN's."""
    kind: Kind
    table: str | None
    partitioned: str | None
    database: str
    files: int
    """Number of its files that were used."""
    size_bytes: int
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    waited_s: float
    device_s: float
    buffered_bytes: int | None
    """Of its pages in the engine's buffer at the end; null if that was not read."""
    buffered_pages_by_use: dict[str, int] | None
    """Number of these pages by what the engine keeps of their use; null if that was not read."""
    speedup: Estimate | None
    """Rate if its device took no time, over that as recorded; null if that was not simulated."""


def buffer_use(buffer: BufferContent | None) -> BufferUse | None:
    """The engine's buffer in JSON; ``None`` if it was not read."""
    return None if buffer is None else BufferUse(size_bytes=buffer.bytes, used_bytes=buffer.used_bytes)


def relation_row(
    row: RelationTraffic, saved: Mapping[str, TimeSaving], buffer: BufferContent | None = None
) -> RelationRow:
    """One table or index in JSON."""
    saving = saved.get(row.relation.label)
    return RelationRow(
        name=row.relation.label,
        kind=row.relation.kind,
        table=row.relation.table,
        partitioned=row.relation.partitioned,
        database=row.relation.database,
        files=len(row.files),
        size_bytes=row.size_bytes,
        reads=row.reads,
        writes=row.writes,
        read_bytes=row.read_bytes,
        written_bytes=row.written_bytes,
        waited_s=row.waited_s,
        device_s=row.device_s,
        buffered_bytes=None if buffer is None else row.buffered_bytes,
        buffered_pages_by_use=None if buffer is None else row.buffered_by_use,
        speedup=None if saving is None else saving.speedup,
    )


def _headline(relations: Relations, used: Sequence[RelationTraffic], saved: Mapping[str, TimeSaving]) -> str:
    if relations.rows and not used:
        return "No table or index with a name was read or written while the database was recorded."
    if not used:
        return "No table or index has a name in this recording."
    savings = [saving for saving in saved.values() if saving.speedup is not None]
    best = max(savings, key=lambda saving: saving.share or 0.0, default=None)
    if best is None or best.speedup is None:
        label, waited = printable(used[0].relation.label), numbers.seconds_text(used[0].waited_s)
        return f"Sessions waited longest for {label}: {waited}."
    if best.speedup.low <= 1:
        return "No table or index alone saves time on a faster device that can be told from chance."
    share = numbers.percent_text(best.share or 0.0)
    return f"{printable(best.role)} saves most if its device took no time: at most {share} of a unit of work."


def _relations_table(
    rows: Sequence[RelationTraffic], saved: Mapping[str, TimeSaving], *, buffered: bool
) -> Table:
    held = ["buffered"] if buffered else []
    figures = ["size", *held, "reads", "writes", "waited", "saved at most", "times faster"]
    shown = empty_table(
        ["table or index", "kind"],
        figures,
        f"Tables and indexes by waits of sessions; savings of at most {MOST_RELATIONS}",
    )
    for row in rows:
        saving = saved.get(row.relation.label)
        simulated = saving is not None and saving.speedup is not None
        shown.add(
            printable(row.relation.label),
            row.relation.kind if row.relation.kind != "toast" else "table",
            figure_cell(row.size_bytes, numbers.size_text),
            *([figure_cell(row.buffered_bytes, numbers.size_text)] if buffered else []),
            figure_cell(row.reads, numbers.count_text),
            figure_cell(row.writes, numbers.count_text),
            figure_cell(row.waited_s, numbers.seconds_text),
            figure_cell(saving.share, numbers.percent_text) if simulated and saving else numbers.NONE,
            estimate_cell(saving.speedup, numbers.ratio_text) if simulated and saving else numbers.NONE,
        )
    return shown
