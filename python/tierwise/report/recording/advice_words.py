"""Advice in words: the main sentence, and the further ones."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Advice, Goal, Move, Option, Wear
from tierwise.report import numbers
from tierwise.report.recording.prediction_words import moving, of_what, times
from tierwise.report.study.moves import ROLE_NAMES

_CENT = 0.01
_MOST_STEPS = 1
_MONTHS_PER_YEAR = 12
_LONG_MONTHS = 120
_TB = 1e12


def first_sentence(advice: Advice) -> str:
    """What to move first and its gain; or that no move is worth it."""
    if not advice.ladder:
        limit = _limit(advice)
        return f"Move nothing: no single move{limit} gains anything that can be told from chance."
    first, *rest = advice.ladder
    return f"{_move_sentence(first)}{_after(rest)}."


def further_sentences(advice: Advice) -> list[str]:
    """The best placement, the goal, the roles left out, and devices that wear out."""
    said = [_best_sentence(advice), _goal_sentence(advice)]
    worn = _wear_sentences(advice.best.wear) if advice.best else []
    return [sentence for sentence in [*said, *worn] if sentence]


def money(usd: float) -> str:
    """``12 $/month``."""
    if 0 < usd < _CENT:
        return f"less than {_CENT}\u00a0$/month"
    return f"{numbers.significant(usd, 2) if 0 < usd < 10 else numbers.count(usd)}\u00a0$/month"


def cost(usd: float) -> str:
    """The extra cost of a move, or that there is none."""
    return f"for {money(usd)}" if usd > 0 else "at no further cost" if usd == 0 else f"and {money(-usd)} less"


def months(value: float | None) -> str:
    """``18 months``, ``9 years``; a dash if unknown."""
    if value is None:
        return numbers.NONE
    if value >= _LONG_MONTHS:
        return "over 10 years"
    if value >= 2 * _MONTHS_PER_YEAR:
        return f"{value / _MONTHS_PER_YEAR:.1f} years"
    return f"{value:.0f} months" if value >= 2 else f"{value * 30.4:.0f} days"


def _move_sentence(move: Move) -> str:
    speedup = move.prediction.speedup
    gain = f"{times(speedup)} {of_what(move.prediction)}" if speedup else "no figure"
    return f"Move {moving({move.role: move.device})}: {gain} {cost(move.usd_per_month)}"


def _after(rest: Sequence[Move]) -> str:
    steps = [
        f"then {ROLE_NAMES[move.role]} to {move.device}: a further {numbers.ratio(move.step.value)} times "
        f"{cost(move.usd_per_month)}"
        for move in rest[:_MOST_STEPS]
    ]
    if more := len(rest) - len(steps):
        steps.append(f"{more} more move{'s' if more > 1 else ''} on the ladder below")
    return "".join(f"; {step}" for step in steps) or "; nothing else gains more than a trifle after that"


def _best_sentence(advice: Advice) -> str:
    best = advice.best
    if best is None or not best.placement:
        return ""
    if advice.ladder and best.placement == advice.ladder[-1].placement:
        return f"That is the best of {_tried(advice)}."
    speedup = best.prediction.speedup
    gain = f" {times(speedup)} {of_what(best.prediction)}" if speedup else ""
    return f"Best of {_tried(advice)}: {moving(best.placement)}:{gain} for {money(best.usd_per_month)}."


def _tried(advice: Advice) -> str:
    many = f"{numbers.count(advice.tried)} placements"
    return f"all {many}{_limit(advice)}" if advice.exact else f"{many} that were tried{_limit(advice)}"


def _limit(advice: Advice) -> str:
    return "" if advice.budget_usd is None else f" for {money(advice.budget_usd)} or less"


def _goal_sentence(advice: Advice) -> str:
    if advice.goal is None:
        return ""
    goal = goal_text(advice.goal)
    if advice.reaching is None:
        return f"No placement reaches {goal}."
    return f"Cheapest that reaches {goal}{_how_surely(advice.goal, advice.reaching)}."


def goal_text(goal: Goal) -> str:
    """``2 000 transactions a second``, ``a 99th percentile of 5 ms``."""
    if goal.what == "tps":
        return f"{numbers.count(goal.bound)} transactions a second"
    return f"a {goal.what.removeprefix('p')}th percentile of {numbers.microseconds(goal.bound)}"


def _how_surely(goal: Goal, option: Option) -> str:
    figure = goal.figure(option.prediction)
    surely = "" if goal.reached(option.prediction, surely=True) else ", but not with its whole interval"
    where = moving(option.placement) or "as recorded"
    if figure is None:
        return f": {where}"
    if goal.what == "tps":
        shown = f"{numbers.significant(figure.value)} ({_span(figure.low, figure.high)}) a second"
    else:
        ends = numbers.span(numbers.microseconds(figure.low), numbers.microseconds(figure.high))
        shown = f"{numbers.microseconds(figure.value)} ({ends})"
    return f"{surely}: {where}, {shown}, {money(option.usd_per_month)}"


def _span(low: float, high: float) -> str:
    """A range of plain figures."""
    return numbers.span(numbers.significant(low), numbers.significant(high))


def _wear_sentences(worn: Sequence[Wear]) -> list[str]:
    """Sentences on devices that would not last five years under this load without a pause."""
    short = [one for one in worn if one.months is not None and one.months < 5 * _MONTHS_PER_YEAR]
    return [
        f"{one.device} would be worn out in {months(one.months)} of this load without a pause: "
        f"{one.written_bytes_per_month / _TB:,.3g} TB a month of {one.endurance_tb_written:,.0f} TB."
        for one in short
    ]
