"""Advice in words: what the decision is compared with, the ladder, devices left out, and worn devices."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Advice, Move, Wear
from tierwise.advise.durability import ephemeral, lost_at_stop
from tierwise.advise.option import MARGIN, lengthens_median
from tierwise.model.names import capitalized
from tierwise.report import numbers
from tierwise.report.moves import join
from tierwise.report.recording.decision_words import (
    along_words,
    gain_words,
    goal_sentence,
    headline,
    paid_headline,
    price_words,
    space_sentences,
    together_sentences,
    tried_words,
    volatile_sentence,
)
from tierwise.report.recording.money_words import cost, money, months
from tierwise.report.recording.prediction_words import moving

_MONTHS_PER_YEAR = 12
_TB = 1e12


def first_sentence(advice: Advice) -> str:
    """The decision."""
    return headline(advice)


def further_sentences(advice: Advice) -> list[str]:
    """What goes with the decision, alternatives, the ladder, devices left out, the goal, worn devices."""
    option = advice.decision.option
    along = along_words(option).removeprefix("; ")
    sentences = [
        f"What can be bought: {paid_headline(advice)}" if advice.instead else "",
        volatile_sentence(advice),
        *together_sentences(advice.decision),
        f"{capitalized(along)}." if along else "",
        *space_sentences(advice),
        fastest_sentence(advice),
        simpler_sentence(advice),
        _ladder_sentence(advice),
        _now_sentence(advice),
        *left_out_sentences(advice),
        goal_sentence(advice),
        *_wear_sentences(option.wear, advice.run.once),
    ]
    return [sentence for sentence in sentences if sentence]


def durability_sentences(advice: Advice) -> list[str]:
    """What a power cut does to each new device of the recommended placement, and whether it was tested."""
    return [
        f"Power cut, {device.device}: {device.fact} (profile: {device.source}). Studies: {device.shown}."
        for device in advice.durability
    ]


def _margin() -> str:
    return numbers.percent(MARGIN - 1)


def fastest_sentence(advice: Advice) -> str:
    """The fastest placement, if it is another, and why it is not recommended."""
    option, fastest, step = advice.decision.option, advice.fastest, advice.step_to_fastest
    if fastest is None or step is None or (option.stays and advice.decision.why != "median"):
        return ""
    if fastest.placement == option.placement:
        return f"That is the fastest of {tried_words(advice)}."
    if step.low <= 1:
        return f"None of {tried_words(advice)} is faster by more than chance."
    gain, price = gain_words(fastest), cost(fastest.cost_per_month, advice.currency)
    other = f"The fastest of {tried_words(advice)}, {moving(fastest.placement)}"
    if lengthens_median(fastest.prediction, advice.recorded):
        return f"{other}, {_median(advice)}: {gain} {price}."
    if advice.decision.why == "goal":
        return f"{other}, gives {gain} {price}."
    why = f"Predictions err by {_margin()} in the median, so this is no reason to choose it."
    memory = lost_at_stop(fastest.placement) and not ephemeral(fastest.placement)
    if memory and not lost_at_stop(option.placement):
        why = "It keeps files in memory, which a power cut or a restart loses."
    return f"{other}, has {numbers.ratio(step.value)} times that rate: {gain} {price}. {why}"


def _median(advice: Advice) -> str:
    """``makes the median latency 4.1 ms, now 2.0 ms``."""
    then, now = advice.fastest and advice.fastest.prediction.p50_us, advice.recorded.p50_us
    if not then or not now:
        return "makes the median latency longer"
    return (
        f"makes the median latency {numbers.microseconds(then.value)}, now {numbers.microseconds(now.value)}"
    )


def simpler_sentence(advice: Advice) -> str:
    """The placement with fewer moves that is as good; the reader weighs its cost against the moves."""
    simpler = advice.simpler
    if simpler is None or simpler.stays or advice.decision.why == "goal":
        return ""
    offer = f"{gain_words(simpler)} {price_words(simpler, advice.currency)}{along_words(simpler)}"
    return f"As good with fewer moves, for more money: {moving(simpler.placement)}: {offer}."


def _ladder_sentence(advice: Advice) -> str:
    """Every step of the ladder."""
    if not advice.ladder:
        return ""
    if len(advice.ladder) == 1 and advice.ladder[0].placement == advice.decision.option.placement:
        return "No further move gains anything that can be told from chance."
    steps = [
        f"({number}) {_step(move, advice.currency, 'a further ' if number > 1 else '')}"
        for number, move in enumerate(advice.ladder, start=1)
    ]
    return f"One move after the other, most gain for the money first: {'; '.join(steps)}."


def _step(move: Move, currency: str, further: str) -> str:
    gain = f"{further}{numbers.ratio(move.step.value)} times"
    return f"{moving(move.moved)}, {gain} {cost(move.cost_per_month, currency)}"


def _now_sentence(advice: Advice) -> str:
    if advice.costs_now_per_month is None:
        return ""
    return f"The recorded volumes cost {money(advice.costs_now_per_month, advice.currency)} now."


def left_out_sentences(advice: Advice) -> list[str]:
    """The candidates that are over the budget, and those that are too small."""
    dear = [
        f"{device.device} (at least {money(device.least_cost_per_month, advice.currency)})"
        for device in advice.left_out
        if device.least_cost_per_month is not None
    ]
    none = [device for device in advice.left_out if device.least_cost_per_month is None]
    small = [device.device for device in none if not device.ephemeral]
    lost = [device.device for device in none if device.ephemeral]
    return [
        *([f"Left out, since the budget pays for no placement with them: {join(dear)}."] if dear else []),
        *(
            [f"Left out, since they hold the files of no role with the room asked for: {join(small)}."]
            if small
            else []
        ),
        *(
            [
                f"Left out, since a stop of the machine takes all files: {join(lost)}. --rebuildable allows "
                "that of a replica, or of a database that can be rebuilt."
            ]
            if lost
            else []
        ),
    ]


def _wear_sentences(worn: Sequence[Wear], once: bool) -> list[str]:
    """Sentences on devices that would not last five years under this load without a pause."""
    return [
        _wear_sentence(wear, once)
        for wear in worn
        if _is_short(wear.months) or _is_short(wear.predicted_months)
    ]


def _is_short(lasts: float | None) -> bool:
    return lasts is not None and lasts < 5 * _MONTHS_PER_YEAR


def _wear_sentence(wear: Wear, once: bool) -> str:
    """Both lifetimes of a device: as much work as recorded, and as much as is predicted."""
    recorded, predicted = (
        f"{months(lasts)} ({written / _TB:,.3g} TB a month)"
        for lasts, written in (
            (wear.months, wear.written_bytes_per_month),
            (wear.predicted_months, wear.predicted_bytes_per_month),
        )
    )
    endurance = (
        f"{wear.endurance_tb_written:,.0f} TB" if wear.endurance_tb_written else "what its maker allows"
    )
    if once:
        when = (
            f"if the job is repeated without a pause, in {recorded}; at the predicted speed, in {predicted}"
        )
    else:
        when = f"at the recorded rate in {recorded}; if the load fills the predicted rate, in {predicted}"
    return f"{wear.device} is worn out after {endurance}: {when}."
