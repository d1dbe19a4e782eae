"""Advice for a day as a document."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import DayAdvice, LoadAdvice
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, figure, table
from tierwise.report.recording.advice_words import first_sentence
from tierwise.report.recording.cautions import caution_blocks, warning_sentence
from tierwise.report.recording.day import LOAD_NAMES, day_sentence, day_warnings, timeline_blocks
from tierwise.report.recording.decision_words import unusable_texts
from tierwise.report.recording.prediction import speedup
from tierwise.report.recording.prediction_words import moving

_NOTHING = "nothing"


def day_advice_document(found: DayAdvice) -> list[Block]:
    """Whether the loads agree, the advice for each, the timeline, and warnings."""
    given = [one.advice for one in found.answers if one.advice]
    cautions = dict.fromkeys(caution.text for advice in given for caution in advice.warnings)
    return [
        *_unusable(found),
        Text(agreement_sentence(found), Tone.HEADLINE),
        *(
            Text(f"{LOAD_NAMES[one.load].capitalize()} ({one.recording}): {_said(one)}")
            for one in found.answers
        ),
        _answers(found),
        *([] if found.same_best else [Text("The best placements differ: compare them at each load above.")]),
        Text(day_sentence(found.day)),
        Text(f"Everything about one of them: tierwise advise {found.day.folder}/RECORDING.", Tone.QUIET),
        *timeline_blocks(found.day),
        *day_warnings(found.day),
        *caution_blocks(map(warning_sentence, cautions)),
    ]


def day_advice_section(found: DayAdvice) -> list[Block]:
    """What the advice page of its peak shows of a day: whether its loads agree, and its timeline."""
    return [
        Text(agreement_sentence(found)),
        _answers(found),
        *timeline_blocks(found.day),
        *day_warnings(found.day),
    ]


def _unusable(found: DayAdvice) -> list[Block]:
    """The recordings of the day that are not usable, why and what to do."""
    asked = {one.recording: one.advice for one in found.answers if one.advice and not one.advice.usable}
    said: list[Block] = []
    for name, advice in asked.items():
        first, *others = unusable_texts(advice.usable, advice.remarks)
        said += [Text(f"{name}: {first.text}", first.tone) if isinstance(first, Text) else first, *others]
    return said


def agreement_sentence(found: DayAdvice) -> str:
    """Whether the peak, the mean and the worst hour ask for the same first move."""
    given = [one for one in found.answers if one.advice]
    names = _names([LOAD_NAMES[one.load] for one in given])
    if len({one.recording for one in given}) == 1:
        alone = f"One recording stands for {names}: "
        return f"{alone}first move {_first(given[0])}."
    if found.same_first_move:
        return f"The advice is the same at {names}: first move {_first(given[0])}."
    each = "; ".join(f"at {LOAD_NAMES[one.load]}, move {_first(one)}" for one in given)
    return f"The advice depends on the load: {each}."


def _first(one: LoadAdvice) -> str:
    return _NOTHING if one.first_move is None else moving(dict([one.first_move]))


def _said(one: LoadAdvice) -> str:
    return first_sentence(one.advice) if one.advice else f"no advice: {one.refused}."


def _answers(found: DayAdvice) -> Table:
    words = ["first move", "best placement"]
    currency = next((one.advice.currency for one in found.answers if one.advice), "")
    price = f"{SYMBOLS.get(currency, currency)}/month"
    shown = table(words, ["times\nfaster", f"{found.day.unit}/s", "p99", price], "Best placements", ["load"])
    for one in found.answers:
        best = one.advice.decision.option if one.advice else None
        if best is None:
            shown.add(LOAD_NAMES[one.load], _first(one), numbers.NONE, *[Cell(numbers.NONE)] * 4)
            continue
        shown.add(
            LOAD_NAMES[one.load],
            _first(one),
            moving(best.placement) or _NOTHING,
            speedup(best.prediction),
            estimate(best.prediction.rate_per_s, numbers.significant),
            estimate(best.prediction.p99_us, numbers.microseconds),
            figure(best.cost_per_month, numbers.significant),
        )
    return shown


def _names(loads: Sequence[str]) -> str:
    *first, last = loads
    return f"{', '.join(first)} and {last}" if first else last
