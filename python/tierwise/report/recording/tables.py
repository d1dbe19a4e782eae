"""Advice on tables and indexes, as a document."""

from __future__ import annotations

from tierwise.advise.tables import TableAdvice, TableSet
from tierwise.model.placement import Role
from tierwise.report import numbers
from tierwise.report.advice.steps import Guide, guide
from tierwise.report.document import Block, Table, Text, Tone, estimate, figure, table
from tierwise.report.recording.prediction import warning_texts
from tierwise.report.recording.prediction_words import recorded_sentence

_MOST_NAMES = 8


def tables_document(advice: TableAdvice) -> list[Block]:
    """The recommended tables and indexes, the other sets, the steps and the warnings."""
    blocks: list[Block] = [
        Text(_headline(advice), Tone.HEADLINE),
        Text(recorded_sentence(advice.run)),
        _table(advice),
    ]
    recommended = advice.recommended
    if recommended is not None:
        blocks += [Text(f"Move: {', '.join(recommended.names)}.")]
        blocks += _steps(guide(advice.run.engine, {Role.SELECTED: advice.device}))
    return [*blocks, *warning_texts(advice.warnings)]


def _headline(advice: TableAdvice) -> str:
    best = advice.recommended
    if best is None or best.prediction.speedup is None:
        return f"Leave the tables where they are: no set of them on {advice.device} can be told from that."
    named = f"{len(best.names)} table{'s' if len(best.names) != 1 else ''} and indexes"
    if len(best.names) == 1:
        named = best.names[0]
    size = f"{numbers.size(best.size_bytes)} of {numbers.size(advice.total_bytes)}"
    gain = numbers.ratio(best.prediction.speedup.value)
    most = max(one.gain for one in advice.sets)
    share = numbers.percent(best.gain / most)
    kept = "" if best.gain >= most else f", {share} of the gain of the fastest set"
    return f"Move {named} ({size}) to {advice.device}: {gain} times the throughput{kept}."


def _table(advice: TableAdvice) -> Table:
    shown = table(["on " + advice.device], ["size", "times the throughput"], "The best sets by size")
    for place, one in enumerate(advice.sets):
        mark = " (recommended)" if place == advice.best else ""
        refused = one.prediction.speedup is None
        shown.add(
            f"{_names(one)}{mark}",
            figure(one.size_bytes, numbers.size),
            numbers.NONE
            if refused or one.prediction.speedup is None
            else estimate(one.prediction.speedup, numbers.ratio),
        )
    return shown


def _names(one: TableSet) -> str:
    if len(one.names) <= _MOST_NAMES:
        return ", ".join(one.names)
    return f"{', '.join(one.names[:_MOST_NAMES])} and {len(one.names) - _MOST_NAMES} more"


def _steps(found: Guide) -> list[Block]:
    lines: list[Block] = []
    for step in found.steps:
        lines += [
            Text(step.note),
            Text(f"{found.variables}\n{step.there}"),
            Text(f"The way back:\n{step.back}"),
        ]
    return lines
