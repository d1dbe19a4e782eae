"""A larger machine instead of a move, and what growth breaks first, as tables and in words."""

from __future__ import annotations

from tierwise.advise import Advice
from tierwise.advise.growing import Growing, GrowthAnswer, GrowthLimit
from tierwise.report import numbers
from tierwise.report.document import Block, Column, ColumnKind, Table, Text, Tone, figure, table
from tierwise.report.moves import ROLE_NAMES, join
from tierwise.report.recording.money_words import cost
from tierwise.report.recording.prediction import chief_figure, gain_cells, gain_headings
from tierwise.report.recording.prediction_words import moving


def machine_blocks(advice: Advice) -> list[Block]:
    """Each other machine with its gain and price; nothing without one."""
    if advice.instance is None:
        return []
    if not advice.machines:
        return [Text(f"No machine larger than {advice.instance.name} is known: name it with --instance.")]
    once = advice.recorded.once
    figures = ["vCPUs", "GiB", *gain_headings(advice.run.unit, advice.currency, once)]
    moved = any(move.with_moves for move in advice.machines)
    figures += ["with the\nmoves"] if moved else []
    machine_table = table(["machine"], figures, "Machine instead")
    for move in advice.machines:
        machine_table.add(
            move.instance,
            figure(move.vcpus, numbers.significant),
            figure(move.memory_gib, numbers.significant),
            *gain_cells(move, once),
            *([chief_figure(move.with_moves, once) if move.with_moves else numbers.NONE] if moved else []),
            tone=Tone.PLAIN if move.worthwhile else Tone.QUIET,
        )
    text = f"Compared with {advice.instance.name}, every file where it is: rent more a month."
    blocks: list[Block] = [machine_table, Text(text, Tone.QUIET)]
    return blocks


def growing_blocks(advice: Advice) -> list[Block]:
    """The answer to the first limit, then at which growth each resource no longer suffices."""
    growing = advice.growing
    if growing is None:
        return []
    table = Table(
        [
            Column("what", ColumnKind.NAME),
            Column("suffices up to\ntimes"),
            Column(f"{advice.run.unit}/s"),
        ],
        title=f"Growth to {growing.factor:g} times the data and the load",
    )
    for limit in growing.limits:
        is_rate = limit.factor is not None and limit.what not in ("space", "wear")
        table.add(
            name_of(limit),
            _times(growing, limit.factor),
            figure(growing.rate_per_s * (limit.factor or 0) if is_rate else None, numbers.significant),
            tone=Tone.PLAIN if limit.factor is not None else Tone.QUIET,
        )
    return [*(Text(sentence) for sentence in growing_sentences(advice, growing)), table]


def growing_sentences(advice: Advice, growing: Growing) -> list[str]:
    """What breaks first and when, and the cheapest answer to it."""
    first, answer = growing.first, growing.answer
    kept = growing.keeps_up_to
    sentences = []
    if first is None or answer is None:
        sentences.append(
            f"With {growing.factor:g} times the data and the load, nothing that is modelled breaks."
        )
    else:
        sentences.append(
            f"Growth: {name_of(first)} breaks first, {_when(first)}. {answer_sentence(advice, first, answer)}"
        )
    if kept is not None:
        load = f"up to {numbers.ratio(kept)} times the load" if kept > 1 else "with less than the load"
        sentences.append(f"In all, the recorded placement keeps up {load}, on the recorded cores.")
    return sentences


def answer_sentence(advice: Advice, first: GrowthLimit, answer: GrowthAnswer) -> str:
    """``The cheapest answer: move the log to ssd-nvme-dc, for 8 $/month.``"""
    price = "" if answer.cost_per_month is None else f", {cost(answer.cost_per_month, advice.currency)}"
    factor = advice.growing.factor if advice.growing else 1.0
    if answer.placement:
        return f"The cheapest answer: move {moving(answer.placement)}{price}."
    if answer.cores:
        machine = f": {answer.instance}{price}" if answer.instance else ""
        return f"You need {answer.cores} cores for {factor:g} times the load{machine}."
    if answer.instance:
        return f"The cheapest answer: {answer.instance}{price}."
    if first.what == "locks":
        return "No device and no core helps: sessions wait for each other."
    return f"None of the candidates keeps up with {factor:g} times the load."


def name_of(limit: GrowthLimit) -> str:
    """``the device of the log and the data``, ``the cores``."""
    names = join([ROLE_NAMES[role] for role in limit.roles])
    match limit.what:
        case "device":
            return f"the device of {names}"
        case "space":
            return f"the space for {names}"
        case "wear":
            return f"the endurance of the device of {names}"
        case "cores":
            return "processor time"
        case "machine":
            return "the machine's limit for its volumes"
        case "locks":
            return "waits for locks"


def _when(limit: GrowthLimit) -> str:
    factor = limit.factor or 1.0
    return f"at {numbers.ratio(factor)} times the data and the load" if factor > 1 else "now"


def _times(growing: Growing, factor: float | None) -> str:
    if factor is None:
        return f"{growing.factor:g} or more"
    return numbers.ratio(factor) if factor > 1 else "now"
