"""The advice for a fleet as a page that opens offline."""

from __future__ import annotations

from tierwise.fleet import FleetAdvice
from tierwise.report import numbers
from tierwise.report.document import Page, Section
from tierwise.report.fleet.document import answer_texts, curve_table, remark_blocks, sections

_GAIN = (
    "The gain of a database is the share of the time of a transaction that a placement saves, times its "
    "importance. The ring is the budget."
)
_FOOTER = "Intervals are 95\u00a0% intervals of predictions. Nothing is measured on the new devices."


def fleet_page(advice: FleetAdvice) -> Page:
    """The answer first, then money, databases, moves, what is left out, and the basis."""
    from tierwise.report.charts.fleet import curve_figure  # altair takes half a second to import

    count = len(advice.databases)
    folded = Section("The same as a table", [curve_table(advice)], folded=True)
    return Page(
        title=f"advice for {numbers.count(count)} database{'s' if count > 1 else ''}",
        header=answer_texts(advice),
        body=[
            Section("Gain against budget", [curve_figure(advice).block(_GAIN), folded], id="budget"),
            *sections(advice),
            Section("Prices, notes and warnings", remark_blocks(advice), id="basis"),
        ],
        footer=_FOOTER,
    )
