"""Advice in words: the recommendation, what it is compared with, the ladder, the goal, and worn devices."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Advice, Move, Option, Wear
from tierwise.advise.option import MARGIN
from tierwise.advise.sources import UsedPrice
from tierwise.report import numbers
from tierwise.report.recording.goal_words import goal_sentence
from tierwise.report.recording.money_words import cost, money, months
from tierwise.report.recording.prediction_words import moving, of_what, times
from tierwise.report.study.moves import ROLE_NAMES, join

_MONTHS_PER_YEAR = 12
_TB = 1e12


def first_sentence(advice: Advice) -> str:
    """What to move and its gain; or that no move is worth it."""
    best = advice.best
    if best is None:
        return f"Move nothing: no placement{_limit(advice)} could be replayed."
    if not best.placement:
        return (
            f"Move nothing: no placement{_limit(advice)} is faster by more than chance and the {_margin()} "
            "by which predictions err in the median."
        )
    return f"Move {moving(best.placement)}: {_gain(best)} {_price(best, advice)}{_along(best)}."


def further_sentences(advice: Advice) -> list[str]:
    """Alternatives, the ladder, devices left out, the goal, and devices that wear out."""
    said = [
        fastest_sentence(advice),
        cheaper_sentence(advice),
        _ladder_sentence(advice),
        _now_sentence(advice),
        *left_out_sentences(advice),
        goal_sentence(advice),
    ]
    worn = _wear_sentences(advice.best.wear) if advice.best else []
    return [sentence for sentence in [*said, *worn] if sentence]


def durability_sentences(advice: Advice) -> list[str]:
    """What a power cut does to each new device of the recommended placement, and whether it was tested."""
    return [
        f"Power cut, {one.device}: {one.fact} (profile: {one.source}). Studies: {one.shown}."
        for one in advice.durability
    ]


def stale_sentence(prices: Sequence[UsedPrice]) -> str:
    """The prices that may be older than a year; empty if none is."""
    stale = [f"{one.device} ({one.date})" for one in prices if one.stale]
    if not stale:
        return ""
    return f"Prices that may be older than a year: {', '.join(stale)}. Give current ones with --prices."


def _gain(option: Option) -> str:
    speedup = option.prediction.speedup
    return f"{times(speedup)} {of_what(option.prediction)}" if speedup else "no figure"


def _price(option: Option, advice: Advice) -> str:
    """``for 12 $/month``, with the rent that ends."""
    price = cost(option.cost_per_month, advice.currency)
    if option.credit_per_month == 0:
        return price
    new, credit = (money(one, advice.currency) for one in (option.new_per_month, option.credit_per_month))
    return f"{price} ({new} for new devices, {credit} of rent ends)"


def _along(option: Option) -> str:
    """The roles that have to move too, before a recorded volume can be given up."""
    if not option.taken_along:
        return ""
    return f"; move {moving(option.taken_along)} too, so that the rent of the recorded volume ends"


def _margin() -> str:
    return numbers.percent(MARGIN - 1)


def fastest_sentence(advice: Advice) -> str:
    """The fastest placement, if it is another, and why it is not recommended."""
    best, fastest, step = advice.best, advice.fastest, advice.step_to_fastest
    if best is None or fastest is None or (not best.placement and not fastest.placement):
        return ""
    if fastest.placement == best.placement or step is None:
        return f"That is the fastest of {_tried(advice)}."
    if step.low <= 1:
        return f"None of {_tried(advice)} is faster by more than chance."
    if advice.cheaper and advice.cheaper.placement == fastest.placement:
        return ""
    gain, price = _gain(fastest), cost(fastest.cost_per_month, advice.currency)
    return (
        f"The fastest of {_tried(advice)}, {moving(fastest.placement)}, has {numbers.ratio(step.value)} "
        f"times that rate: {gain} {price}. Predictions err by {_margin()} in the median, so this "
        "is no reason to choose it."
    )


def cheaper_sentence(advice: Advice) -> str:
    """The cheaper placement that is as good; the reader weighs its cost against its moves."""
    cheaper, fastest = advice.cheaper, advice.fastest
    if cheaper is None:
        return ""
    where = moving(cheaper.placement) or "everything as recorded"
    also = ", and the fastest" if fastest and fastest.placement == cheaper.placement else ""
    offer = f"{_gain(cheaper)} {_price(cheaper, advice)}{_along(cheaper)}"
    return f"As good and cheaper{also}, if the money is worth more moves: {where}: {offer}."


def _ladder_sentence(advice: Advice) -> str:
    """Every step of the ladder."""
    if not advice.ladder:
        return ""
    if len(advice.ladder) == 1 and advice.best and advice.ladder[0].placement == advice.best.placement:
        return "No further move gains anything that can be told from chance."
    steps = [
        f"({number}) {_step(move, advice.currency, 'a further ' if number > 1 else '')}"
        for number, move in enumerate(advice.ladder, start=1)
    ]
    return f"One move after the other, most gain for the money first: {'; '.join(steps)}."


def _step(move: Move, currency: str, further: str) -> str:
    gain = f"{further}{numbers.ratio(move.step.value)} times"
    return f"{ROLE_NAMES[move.role]} to {move.device}, {gain} {cost(move.cost_per_month, currency)}"


def _now_sentence(advice: Advice) -> str:
    if advice.costs_now_per_month is None:
        return ""
    return f"The recorded volumes cost {money(advice.costs_now_per_month, advice.currency)} now."


def left_out_sentences(advice: Advice) -> list[str]:
    """The candidates that are over the budget, and those that are too small."""
    dear = [
        f"{one.device} (at least {money(one.least_cost_per_month, advice.currency)})"
        for one in advice.left_out
        if one.least_cost_per_month is not None
    ]
    small = [one.device for one in advice.left_out if one.least_cost_per_month is None]
    return [
        *([f"Left out, since the budget pays for no placement with them: {join(dear)}."] if dear else []),
        *(
            [f"Left out, since they hold the files of no role with the room asked for: {join(small)}."]
            if small
            else []
        ),
    ]


def _tried(advice: Advice) -> str:
    many = f"{numbers.count(advice.tried)} placements"
    return f"all {many}{_limit(advice)}" if advice.exact else f"{many} that were tried{_limit(advice)}"


def _limit(advice: Advice) -> str:
    if advice.budget_per_month is None:
        return ""
    return f" for {money(advice.budget_per_month, advice.currency)} or less"


def _wear_sentences(worn: Sequence[Wear]) -> list[str]:
    """Sentences on devices that would not last five years under this load without a pause."""
    short = [one for one in worn if one.months is not None and one.months < 5 * _MONTHS_PER_YEAR]
    return [
        f"{one.device} would be worn out in {months(one.months)} of this load without a pause: "
        f"{one.written_bytes_per_month / _TB:,.3g} TB a month of {one.endurance_tb_written:,.0f} TB."
        for one in short
    ]
