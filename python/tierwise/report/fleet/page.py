"""The advice for a fleet as a page that opens offline."""

from __future__ import annotations

from tierwise.fleet import FleetAdvice
from tierwise.report import numbers
from tierwise.report.document import Block, Page, Section, Text, Tone, texts
from tierwise.report.fleet.document import (
    curve_table,
    database_table,
    left_out_blocks,
    move_blocks,
    remark_blocks,
)
from tierwise.report.fleet.words import database_sentences, headline, left_out_sentence, money_sentences

_GAIN = (
    "The gain of a database is the share of the time of a transaction that a placement saves, times its "
    "importance. The ring is the budget."
)
_FOOTER = "Intervals are 95\u00a0% intervals of predictions. Nothing is measured on the new devices."


def fleet_page(advice: FleetAdvice) -> Page:
    """The answer first, then money, databases, moves, what is left out, and the basis."""
    from tierwise.report.charts.fleet import curve_figure  # altair takes half a second to import

    count = len(advice.databases)
    header: list[Block] = [
        Text(headline(advice), Tone.HEADLINE),
        *texts(money_sentences(advice)),
        *texts([*database_sentences(advice), left_out_sentence(advice)], Tone.WARNING),
    ]
    folded = Section("The same as a table", [curve_table(advice)], folded=True)
    left_out = left_out_blocks(advice)
    return Page(
        title=f"advice for {numbers.count(count)} database{'s' if count > 1 else ''}",
        header=header,
        body=[
            Section("Gain against budget", [curve_figure(advice).block(_GAIN), folded], id="budget"),
            Section("Databases", [database_table(advice)], id="databases"),
            *([Section("How sure each move is", move_blocks(advice), id="moves")] if advice.moves else []),
            *([Section("Left out", left_out, id="left-out")] if left_out else []),
            Section("Prices, notes and warnings", remark_blocks(advice), id="basis"),
        ],
        footer=_FOOTER,
    )
