"""Advice as a document."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Advice, Move, Option
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import Block, Table, Text, Tone, estimate, figure, table
from tierwise.report.recording.advice_words import (
    durability_sentences,
    first_sentence,
    further_sentences,
)
from tierwise.report.recording.decision_words import unusable_texts
from tierwise.report.recording.machine import growing_blocks, machine_blocks
from tierwise.report.recording.memory import memory_blocks
from tierwise.report.recording.money_words import bill_table, cents, months, price_texts
from tierwise.report.recording.prediction import notes
from tierwise.report.recording.prediction_words import advice_cautions, recorded_sentence
from tierwise.report.recording.settings import setting_blocks
from tierwise.report.recording.tables import tables_blocks

_MOST_MOVES = 12
_TB = 1e12


def advice_document(advice: Advice) -> list[Block]:
    """Whether it may be followed, the decision; then the ladder, single moves, its devices, and warnings."""
    decision = advice.decision
    blocks: list[Block] = unusable_texts(advice.usable, advice.remarks)
    blocks += [Text(first_sentence(advice), Tone.HEADLINE)]
    blocks += [Text(sentence) for sentence in further_sentences(advice)]
    blocks.append(Text(f"Recorded: {recorded_sentence(advice.run)}"))
    if advice.ladder:
        blocks.append(_moves("The ladder: one move after the other", advice.ladder, advice.currency, True))
    if advice.moves:
        shown = sorted(advice.moves[:_MOST_MOVES], key=_gain, reverse=True)
        more = len(advice.moves) - len(shown)
        blocks.append(_moves("Each move alone", shown, advice.currency, False))
        blocks += [Text(f"{more} more in --format json", Tone.QUIET)] if more else []
    blocks += [*setting_blocks(advice), *memory_blocks(advice), *machine_blocks(advice)]
    blocks += growing_blocks(advice)
    blocks += tables_blocks(advice.tables) if advice.tables else []
    options = {"The recommended placement": decision.option}
    if advice.reaching and advice.reaching.placement != decision.option.placement:
        options["The goal"] = advice.reaching
    for name, option in options.items():
        if not option.stays:
            blocks += [_devices(name, option), bill_table("What it costs a month", option, advice.currency)]
    blocks += [Text(sentence) for sentence in durability_sentences(advice)]
    blocks += price_texts(advice.prices)
    blocks += [Text(f"Note: {note}.", Tone.QUIET) for note in advice.notes]
    return [*blocks, *notes([decision.prediction]), *advice_cautions(advice)]


def _moves(title: str, moves: Sequence[Move], currency: str, ladder: bool) -> Table:
    unit = f"{SYMBOLS.get(currency, currency)}/month"
    figures = ("times faster\nin all" if ladder else "times\nfaster", "this step\n(seeds)", unit, "GB")
    moves_table = table(["move"], [*figures, "more/s\nper GB", f"more/s\nper {unit}"], title)
    for move in moves:
        gain_per_cost = figure(move.gain_per_cost, numbers.significant) if move.cost_per_month > 0 else "free"
        moves_table.add(
            f"{', '.join([move.role, *move.along])} to {move.device}",
            estimate(move.prediction.speedup, numbers.ratio),
            estimate(move.step, numbers.ratio),
            figure(move.cost_per_month, cents),
            figure(move.size_bytes / 1e9 if move.size_bytes else None, numbers.significant),
            figure(move.gain_per_gb, numbers.significant),
            gain_per_cost,
            tone=Tone.PLAIN if move.worthwhile else Tone.QUIET,
        )
    return moves_table


def _devices(name: str, option: Option) -> Table:
    """Each new device of a placement: its roles, size, written volume and lifetime."""
    figures = ["GB", "TB written\na month", "worn out\nafter", "at the\npredicted rate"]
    devices_table = table(["device", "holds"], figures, name)
    worn = {wear.device: wear for wear in option.wear}
    places = {**option.placement, **option.taken_along}
    for device, size_bytes in option.size_bytes.items():
        roles = [role for role, place in places.items() if place == device]
        wear = worn.get(device)
        devices_table.add(
            device,
            ", ".join(roles),
            figure(size_bytes / 1e9, numbers.significant),
            figure(wear.written_bytes_per_month / _TB if wear else None, numbers.significant),
            months(wear.months) if wear else numbers.NONE,
            months(wear.predicted_months) if wear else numbers.NONE,
        )
    return devices_table


def _gain(move: Move) -> float:
    return move.gain_per_s
