"""The advice for a fleet as a document, and as a page that opens offline."""

from __future__ import annotations

from tierwise.fleet import FleetAdvice, FleetDatabase
from tierwise.fleet.records import FleetRemark
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import (
    Block,
    Cell,
    Page,
    Section,
    Table,
    Text,
    Tone,
    estimate,
    figure,
    table,
    texts,
)
from tierwise.report.fleet.words import (
    database_sentences,
    headline,
    left_out_sentence,
    money_sentences,
    sharing_blocks,
    sharing_sentence,
    unusable_sentences,
)
from tierwise.report.recording.money_words import amount_words, price_texts
from tierwise.report.recording.prediction_words import caution_blocks, moving, warning_sentence

_LEAST_SHARE = 0.05
"""Share of the draws from which a move outside the best set is listed."""
_MOST_NAMED = 3


def fleet_document(advice: FleetAdvice) -> list[Block]:
    """The answer in sentences, then databases, moves, the curve, what is left out, prices and warnings."""
    budget = Section("Gain against budget", [curve_table(advice)])
    return [*answer_texts(advice), *sections(advice), budget, *remark_blocks(advice)]


def answer_texts(advice: FleetAdvice) -> list[Block]:
    """Recordings that are not usable, the main sentence, money, and databases with something to say of."""
    return [
        *texts(unusable_sentences(advice)[:1], Tone.HEADLINE),
        *texts(unusable_sentences(advice)[1:], Tone.WARNING),
        Text(headline(advice), Tone.HEADLINE),
        *texts([*money_sentences(advice), sharing_sentence(advice)]),
        *texts([*database_sentences(advice), left_out_sentence(advice)], Tone.WARNING),
    ]


def sections(advice: FleetAdvice) -> list[Block]:
    """Databases, shared devices, moves, and what is left out."""
    found = (
        ("Databases", "databases", [database_table(advice)]),
        ("Shared devices", "shared", sharing_blocks(advice)),
        ("How sure each move is", "moves", move_blocks(advice)),
        ("Left out", "left-out", left_out_blocks(advice)),
    )
    return [Section(title, blocks, id=name) for title, name, blocks in found if blocks]


def database_table(advice: FleetAdvice) -> Table:
    """One row for each database, those that gain most first."""
    figures = ["times\nfaster", "importance", "p99", _unit(advice)]
    found = table(["moves"], figures, names=["database"])
    for one in sorted(advice.databases, key=lambda one: -one.importance * one.option.gain):
        option = one.option
        tone = Tone.PLAIN if option.placement else Tone.QUIET
        found.add(
            one.name,
            Cell(_moves(one), tone),
            estimate(option.speedup if option.placement else None, numbers.ratio),
            figure(one.importance, numbers.printed),
            estimate(option.p99_us, numbers.microseconds),
            figure(option.cost_per_month, amount_words),
        )
    return found


def move_blocks(advice: FleetAdvice) -> list[Block]:
    """How often each move is in the best set, those outside it last; nothing without a move."""
    if not advice.moves:
        return []
    found = table([], ["in the\nbest set"], names=["database", "role", "device", "advised"])
    shown = [move for move in advice.moves if move.chosen or move.draws_share >= _LEAST_SHARE]
    for move in shown:
        share = Cell(numbers.percent(move.draws_share), value=move.draws_share)
        advised = "yes" if move.chosen else "no"
        found.add(move.database, move.role, move.device, advised, share, tone=_tone(move.chosen))
    text = (
        f"Share of {advice.draws} draws of all speed-ups from their intervals (seed {advice.seed}) in which "
        "the best set has the move."
    )
    return [found, Text(text, Tone.QUIET)]


def curve_table(advice: FleetAdvice) -> Table:
    """The best set for other budgets; that of the asked budget is marked."""
    found = table([], [f"budget\n{_unit(advice)}", f"cost\n{_unit(advice)}", "gain"])
    for one in advice.curve:
        tone = Tone.HEADLINE if one.budget_per_month == advice.budget_per_month else Tone.PLAIN
        found.add(
            Cell(amount_words(one.budget_per_month), tone, value=one.budget_per_month),
            Cell(amount_words(one.cost_per_month), tone, value=one.cost_per_month),
            Cell(numbers.percent(one.gain_share), tone, value=one.gain_share),
        )
    return found


def left_out_blocks(advice: FleetAdvice) -> list[Block]:
    """Each recording that could not be used, with the reason and the fix."""
    if not advice.left_out:
        return []
    found = table(["reason", "what to do"], [], names=["recording"])
    for one in advice.left_out:
        found.add(one.name, one.problem, one.fix)
    return [found]


def remark_blocks(advice: FleetAdvice) -> list[Block]:
    """Prices, notes and warnings; each names its databases. Warnings of the most databases are in sight."""
    warnings = sorted(advice.warnings, key=lambda one: -len(one.databases))
    return [
        *price_texts(advice.prices),
        *texts([f"Note, {_whose(one, advice)}: {one.text.rstrip('.')}." for one in advice.notes]),
        *caution_blocks(warning_sentence(one.text, _whose(one, advice)) for one in warnings),
    ]


def _whose(remark: FleetRemark, advice: FleetAdvice) -> str:
    count = len(remark.databases)
    if 1 < count == len(advice.databases):
        return "all databases"
    return ", ".join(remark.databases) if count <= _MOST_NAMED else f"{count} databases"


def _moves(one: FleetDatabase) -> str:
    if not one.option.placement:
        return "as recorded"
    along = f"; {moving(one.option.taken_along)} too" if one.option.taken_along else ""
    return f"{moving(one.option.placement)}{along}"


def _tone(chosen: bool) -> Tone:
    return Tone.PLAIN if chosen else Tone.QUIET


def _unit(advice: FleetAdvice) -> str:
    return f"{SYMBOLS.get(advice.currency, advice.currency)}/month"


_GAIN = (
    "The gain of a database is the share of the time of a transaction that a placement saves, times its "
    "importance. The ring is the budget."
)
_FOOTER = "Intervals are 95\u00a0% intervals of predictions. Nothing is measured on the new devices."


def fleet_page(advice: FleetAdvice) -> Page:
    """The answer first, then money, databases, moves, what is left out, and the basis."""
    from tierwise.report.charts.curve import curve_figure  # altair takes half a second to import

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
