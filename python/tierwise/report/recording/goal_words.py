"""The goal in words: what it is, and which placement reaches it how surely."""

from __future__ import annotations

from tierwise.advise import Advice, Goal, Option
from tierwise.report import numbers
from tierwise.report.recording.money_words import cost
from tierwise.report.recording.prediction_words import moving

_SAID = {
    "reached": "Cheapest that reaches {goal}",
    "likely reached": "{Goal}: likely reached, by",
    "likely missed": "{Goal}: likely missed; closest",
}


def goal_sentence(advice: Advice) -> str:
    """Which placement reaches the goal, with its figure; empty without a goal."""
    if advice.goal is None:
        return ""
    goal = goal_text(advice.goal)
    if advice.reaching is None:
        return f"No placement reaches {goal}: every interval lies beyond it."
    said = _SAID[advice.goal.verdict(advice.reaching.prediction)]
    start = said.format(goal=goal, Goal=goal[0].upper() + goal[1:])
    where = moving(advice.reaching.placement) or "as recorded"
    price = cost(advice.reaching.cost_per_month, advice.currency)
    return f"{start}: {where}, {_figure(advice.goal, advice.reaching)}, {price}."


def goal_text(goal: Goal) -> str:
    """``2 000 transactions a second``, ``a 99th percentile of 5 ms``."""
    if goal.what == "tps":
        return f"{numbers.count(goal.bound)} transactions a second"
    return f"a {goal.what.removeprefix('p')}th percentile of {numbers.microseconds(goal.bound)}"


def _figure(goal: Goal, option: Option) -> str:
    """The figure that the goal is about, with its interval."""
    figure = goal.figure(option.prediction)
    if figure is None:
        return "no figure"
    if goal.what == "tps":
        ends = numbers.span(numbers.significant(figure.low), numbers.significant(figure.high))
        return f"{numbers.significant(figure.value)} ({ends}) a second"
    ends = numbers.span(numbers.microseconds(figure.low), numbers.microseconds(figure.high))
    return f"{numbers.microseconds(figure.value)} ({ends})"
