"""Advice for a terminal, as renderables of rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tierwise.advise import Advice, Move, Option
from tierwise.report import numbers
from tierwise.report.advice_words import first_sentence, further_sentences, money, months
from tierwise.report.prediction import note_parts, plain_table, warnings_text, with_interval
from tierwise.report.prediction_words import recorded_sentence

_MOST_MOVES = 12
_TB = 1e12


def advice_parts(advice: Advice) -> list[Table | Text]:
    """The sentence first; then the ladder, single moves, the best placement, and what is known against it."""
    parts: list[Table | Text] = [Text(first_sentence(advice), style="bold")]
    parts += [Text(sentence) for sentence in further_sentences(advice)]
    parts += [Text(), Text(f"Recorded: {recorded_sentence(advice.run)}")]
    if advice.ladder:
        parts += [Text("\nThe ladder: one move after the other", style="bold"), _moves(advice.ladder, True)]
    if advice.moves:
        shown = advice.moves[:_MOST_MOVES]
        more = len(advice.moves) - len(shown)
        parts += [Text("\nEach move alone", style="bold"), _moves(shown, False)]
        parts += [Text(f"{more} more in --json", style="dim")] if more else []
    for name, option in (("The best placement", advice.best), ("The goal", advice.reaching)):
        if option and option.placement:
            parts += [Text(f"\n{name}", style="bold"), _option(option)]
    parts += [Text(), *(Text(f"Note: {note}.", style="yellow") for note in advice.notes)]
    best = [advice.best.prediction] if advice.best else []
    return [*parts, *note_parts(best), *warnings_text(advice.warnings)]


def _moves(moves: Sequence[Move], ladder: bool) -> Table:
    table = plain_table()
    table.add_column("move", overflow="fold")
    columns = ("times faster\nin all" if ladder else "times\nfaster", "this step\n(seeds)", "$/month", "GB")
    for name in (*columns, "more/s\nper GB", "more/s\nper $/month"):
        table.add_column(name, justify="right", no_wrap=True, vertical="top")
    for move in moves if ladder else sorted(moves, key=_gain, reverse=True):
        table.add_row(
            f"{move.role} to {move.device}",
            with_interval(move.prediction.speedup, numbers.ratio),
            with_interval(move.step, numbers.ratio),
            _money(move.usd_per_month),
            numbers.significant(move.size_bytes / 1e9) if move.size_bytes else numbers.NONE,
            _plain(move.gain_per_gb),
            _plain(move.gain_per_usd) if move.usd_per_month > 0 else "free",
            style="" if move.worthwhile else "dim",
        )
    return table


def _option(option: Option) -> Table:
    """Each new device of a placement: what lies there, its size, what is written, how long it lasts."""
    table = plain_table()
    for name in ("device", "holds"):
        table.add_column(name, overflow="fold")
    for name in ("GB", "written a month", "worn out after"):
        table.add_column(name, justify="right", no_wrap=True)
    worn = {one.device: one for one in option.wear}
    for device, size_bytes in option.size_bytes.items():
        roles = [role for role, place in option.placement.items() if place == device]
        wear = worn.get(device)
        table.add_row(
            device,
            ", ".join(roles),
            numbers.significant(size_bytes / 1e9) if size_bytes else "0",
            f"{numbers.significant(wear.written_bytes_per_month / _TB)} TB" if wear else numbers.NONE,
            months(wear.months) if wear else numbers.NONE,
        )
    table.add_row("in all", money(option.usd_per_month), style="dim")
    return table


def _gain(move: Move) -> float:
    return move.gain_per_s


def _money(usd: float) -> str:
    return "0" if usd == 0 else numbers.significant(usd)


def _plain(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.significant(value)
