"""Tables and indexes of a recording, as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tierwise.predict.savings import MOST_RELATIONS, Saving
from tierwise.recording.relations import Relations, RelationTraffic
from tierwise.report import numbers
from tierwise.report.document import Block, Table, Text, Tone, estimate, figure, table
from tierwise.report.recording.prediction import warning_texts

_MOST_ROWS = 40


def relations_document(
    relations: Relations, saved: Mapping[str, Saving], warnings: Sequence[str]
) -> list[Block]:
    """The tables and indexes that were waited for longest, and what removal of each would save at most."""
    used = [row for row in relations.rows if row.files]
    blocks: list[Block] = [Text(_headline(used, saved), Tone.HEADLINE)]
    if used:
        blocks.append(_table(used[:_MOST_ROWS], saved))
    if len(used) > _MOST_ROWS:
        blocks.append(Text(f"{len(used) - _MOST_ROWS} further ones were waited for less."))
    unused = [row for row in relations.rows if not row.files]
    if unused:
        size = numbers.size(sum(row.size_bytes for row in unused))
        blocks.append(Text(f"{len(unused)} tables and indexes ({size}) were not read or written."))
    if relations.unnamed:
        waited = numbers.seconds(sum(file.session_waited_s for file in relations.unnamed))
        named = "no file has a name: record with --dsn, or give --names" if not used else "have no name"
        blocks.append(Text(f"{len(relations.unnamed)} files ({waited} of waits): {named}."))
    return [*blocks, *warning_texts(warnings)]


def relation_fields(row: RelationTraffic, saved: Mapping[str, Saving]) -> dict[str, Any]:
    """The fields of one table or index in JSON."""
    saving = saved.get(row.relation.label)
    return {
        "name": row.relation.label,
        "kind": row.relation.kind,
        "table": row.relation.table,
        "partitioned": row.relation.partitioned,
        "files": len(row.files),
        "size_bytes": row.size_bytes,
        "reads": row.reads,
        "writes": row.writes,
        "read_bytes": row.read_bytes,
        "written_bytes": row.written_bytes,
        "waited_s": row.waited_s,
        "device_s": row.device_s,
        "speedup": saving.speedup.model_dump(mode="json") if saving and saving.speedup else None,
    }


def _headline(used: Sequence[RelationTraffic], saved: Mapping[str, Saving]) -> str:
    if not used:
        return "No table or index has a name in this recording."
    savings = [saving for saving in saved.values() if saving.speedup is not None]
    best = max(savings, key=lambda saving: saving.share or 0.0, default=None)
    if best is None or best.speedup is None:
        return f"Sessions waited longest for {used[0].relation.label}: {numbers.seconds(used[0].waited_s)}."
    if best.speedup.low <= 1:
        return "No table or index alone would save time if it were on a faster device."
    share = numbers.percent(best.share or 0.0)
    return f"{best.role} saves most if its device took no time: at most {share} of a unit of work."


def _table(rows: Sequence[RelationTraffic], saved: Mapping[str, Saving]) -> Table:
    figures = ["size", "reads", "writes", "waited", "saved at most", "times faster"]
    shown = table(
        ["table or index", "kind"],
        figures,
        f"Tables and indexes by waits of sessions; savings of at most {MOST_RELATIONS}",
    )
    for row in rows:
        saving = saved.get(row.relation.label)
        simulated = saving is not None and saving.speedup is not None
        shown.add(
            row.relation.label,
            row.relation.kind if row.relation.kind != "toast" else "table",
            figure(row.size_bytes, numbers.size),
            figure(row.reads, numbers.count),
            figure(row.writes, numbers.count),
            figure(row.waited_s, numbers.seconds),
            figure(saving.share, numbers.percent) if simulated and saving else numbers.NONE,
            estimate(saving.speedup, numbers.ratio) if simulated and saving else numbers.NONE,
        )
    return shown
