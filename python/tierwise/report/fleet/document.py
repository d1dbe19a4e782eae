"""The advice for a fleet as a document, and as a page that opens offline."""

from __future__ import annotations

from tierwise.fleet.records import FleetAdvice, FleetDatabase, FleetRemark
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
    made = (
        ("Databases", "databases", [database_table(advice)]),
        ("Shared devices", "shared", sharing_blocks(advice)),
        ("How sure each move is", "moves", move_blocks(advice)),
        ("Left out", "left-out", left_out_blocks(advice)),
    )
    return [Section(title, blocks, id=name) for title, name, blocks in made if blocks]


def database_table(advice: FleetAdvice) -> Table:
    """One row for each database, those that gain most first."""
    figures = ["times\nfaster", "importance", "p99", _unit(advice)]
    databases = table(["moves"], figures, names=["database"])
    for database in sorted(
        advice.databases, key=lambda database: -database.importance * database.option.gain
    ):
        option = database.option
        tone = Tone.PLAIN if option.placement else Tone.QUIET
        databases.add(
            database.name,
            Cell(_moves(database), tone),
            estimate(option.speedup if option.placement else None, numbers.ratio),
            figure(database.importance, numbers.printed),
            estimate(option.p99_us, numbers.microseconds),
            figure(option.cost_per_month, amount_words),
        )
    return databases


def move_blocks(advice: FleetAdvice) -> list[Block]:
    """How often each move is in the best set, those outside it last; nothing without a move."""
    if not advice.moves:
        return []
    move_table = table([], ["in the\nbest set"], names=["database", "role", "device", "advised"])
    shown = [move for move in advice.moves if move.chosen or move.draws_share >= _LEAST_SHARE]
    for move in shown:
        share = Cell(numbers.percent(move.draws_share), value=move.draws_share)
        advised = "yes" if move.chosen else "no"
        move_table.add(move.database, move.role, move.device, advised, share, tone=_tone(move.chosen))
    text = (
        f"Share of {advice.draws} draws of all speed-ups from their intervals (seed {advice.seed}) in which "
        "the best set has the move."
    )
    return [move_table, Text(text, Tone.QUIET)]


def curve_table(advice: FleetAdvice) -> Table:
    """The best set for other budgets; that of the asked budget is marked."""
    curves = table([], [f"budget\n{_unit(advice)}", f"cost\n{_unit(advice)}", "gain"])
    for point in advice.curve:
        tone = Tone.HEADLINE if point.budget_per_month == advice.budget_per_month else Tone.PLAIN
        curves.add(
            Cell(amount_words(point.budget_per_month), tone, value=point.budget_per_month),
            Cell(amount_words(point.cost_per_month), tone, value=point.cost_per_month),
            Cell(numbers.percent(point.gain_share), tone, value=point.gain_share),
        )
    return curves


def left_out_blocks(advice: FleetAdvice) -> list[Block]:
    """Each recording that could not be used, with the reason and the fix."""
    if not advice.left_out:
        return []
    left_out_table = table(["reason", "what to do"], [], names=["recording"])
    for recording in advice.left_out:
        left_out_table.add(recording.name, recording.problem, recording.fix)
    return [left_out_table]


def remark_blocks(advice: FleetAdvice) -> list[Block]:
    """Prices, notes and warnings; each names its databases. Warnings of the most databases are in sight."""
    warnings = sorted(advice.warnings, key=lambda warning: -len(warning.databases))
    return [
        *price_texts(advice.prices),
        *texts([f"Note, {_whose(note, advice)}: {note.text.rstrip('.')}." for note in advice.notes]),
        *caution_blocks(warning_sentence(warning.text, _whose(warning, advice)) for warning in warnings),
    ]


def _whose(remark: FleetRemark, advice: FleetAdvice) -> str:
    count = len(remark.databases)
    if 1 < count == len(advice.databases):
        return "all databases"
    return ", ".join(remark.databases) if count <= _MOST_NAMED else f"{count} databases"


def _moves(fleet_database: FleetDatabase) -> str:
    if not fleet_database.option.placement:
        return "as recorded"
    along = f"; {moving(fleet_database.option.taken_along)} too" if fleet_database.option.taken_along else ""
    return f"{moving(fleet_database.option.placement)}{along}"


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
