"""The decision of an advice in words: move or stay, the goal, space, money and bills."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Advice, Decision, Goal, PricedPlacement
from tierwise.advise.alternatives import SettingChange
from tierwise.advise.costs import DeviceBill, PriceSource
from tierwise.advise.decision import TimeShare
from tierwise.advise.priced_placement import MARGIN
from tierwise.device_models.prices import BillPart, MemoryPrice
from tierwise.model import numbers
from tierwise.model.names import capitalized, join_words
from tierwise.model.placement import ROLE_NAMES, Role
from tierwise.predict.usability import UsabilityRemark
from tierwise.report.document import Block, Cell, Table, Text, Tone, empty_table, figure_cell
from tierwise.report.recording.prediction_report import (
    TIME_NAMES,
    gain_words,
    lost_files_sentence,
    move_words,
    role_names,
)

_CENT = 0.01
_MONTHS_PER_YEAR = 12
LONG_MONTHS = 120


def money_words(amount: float, currency: str) -> str:
    """``12 $/month``, ``12 CHF/month``."""
    unit = f"\u00a0{numbers.per_month_unit(currency)}"
    if 0 < amount < _CENT:
        return f"less than {_CENT}{unit}"
    return f"{numbers.amount_text(amount)}{unit}"


def budget_needed(amount: float, currency: str) -> str:
    """The least budget that pays for an amount, with the decimals that :func:`money_words` prints."""
    return money_words(numbers.least_budget_text(amount, 2 if amount < 100 else 0), currency)


def cost_words(amount: float, currency: str) -> str:
    """What something costs more, that it costs nothing, or what it saves."""
    if amount > 0:
        return f"for {money_words(amount, currency)}"
    return "at no further cost" if amount == 0 else f"and {money_words(-amount, currency)} less"


def lifetime_words(value: float | None) -> str:
    """``18 months``, ``9 years``; a dash if unknown."""
    if value is None:
        return numbers.NONE
    if value >= LONG_MONTHS:
        return "over 10 years"
    if value >= 2 * _MONTHS_PER_YEAR:
        return f"{value / _MONTHS_PER_YEAR:.1f} years"
    return f"{value:.0f} months" if value >= 2 else f"{value * 30.4:.0f} days"


_UNITS = {"size": "GiB", "iops": "I/Os per second", "throughput": "MiB/s"}


def paid_part_words(part: BillPart) -> str:
    """What is paid: ``100 GiB``, ``the device``, ``2 devices``, ``1.3 more when worn out``."""
    if part.what == "replacement":
        return f"{numbers.significant_text(part.quantity, 2)} more when worn out"
    if part.what == "purchase":
        return "the device" if part.quantity == 1 else f"{part.quantity:.0f} devices"
    return f"{_quantity(part.quantity)} {_UNITS[part.what]}"


def bill_table(title: str, option: PricedPlacement, currency: str) -> Table:
    """Each part of a placement's price, the rent that ends, and the sum."""
    unit = numbers.per_month_unit(currency)
    bills = empty_table(["paid for"], [f"{unit}\nof one", unit], title, names=["new device"])
    for bill in option.bills:
        _add(bills, bill)
    if option.credit_per_month:
        bills.add("recorded", "rent that ends", "", figure_cell(-option.credit_per_month, numbers.cents_text))
    bills.add("in all", "", "", figure_cell(option.cost_per_month, numbers.cents_text), tone=Tone.QUIET)
    if abs(option.cost_at_predicted_rate_per_month - option.cost_per_month) >= 0.01:
        words = "if the load fills the predicted rate, which wears drives sooner"
        cell = figure_cell(option.cost_at_predicted_rate_per_month, numbers.cents_text)
        bills.add("in all", words, "", cell, tone=Tone.QUIET)
    return bills


def _add(table: Table, bill: DeviceBill) -> None:
    if not bill.parts:
        table.add(bill.device, "owned", "", figure_cell(0.0, numbers.cents_text))
    for part in bill.parts:
        table.add(
            bill.device, paid_part_words(part), _each(part), figure_cell(part.per_month, numbers.cents_text)
        )


def _each(part: BillPart) -> Cell:
    shown = numbers.cents_text(part.price_each) if part.price_each >= 1 else f"{part.price_each:.5g}"
    return Cell(shown, value=part.price_each)


def _quantity(value: float) -> str:
    return numbers.count_text(value) if abs(value - round(value)) < 1e-3 else numbers.significant_text(value)


def price_source_texts(prices: Sequence[PriceSource]) -> list[Block]:
    """Where the prices come from, which of them are old, and which were not checked."""
    stale = stale_price_sentence(prices)
    sources = [price_source_text(price.device, price) for price in prices]
    return [*([Text(stale, Tone.WARNING)] if stale else []), *sources]


def price_source_text(name: str, price: PriceSource | MemoryPrice) -> Text:
    """``Price of gp3 (2025, not checked): its source.``"""
    sentences = [*([price.date] if price.date else []), *([] if price.checked else ["not checked"])]
    dated = f" ({', '.join(sentences)})" if sentences else ""
    return Text(f"Price of {name}{dated}: {price.source}.", Tone.QUIET)


def stale_price_sentence(prices: Sequence[PriceSource]) -> str:
    """The prices that may be older than a year, and those that were not checked; empty if none is."""
    stale = [f"{price.device} ({price.date})" for price in prices if price.stale]
    unchecked = [price.device for price in prices if not price.checked]
    sentences = [
        *([f"Prices that may be older than a year: {', '.join(stale)}."] if stale else []),
        *([f"Prices that nobody checked against their source: {', '.join(unchecked)}."] if unchecked else []),
    ]
    return " ".join([*sentences, "Give current ones with --prices."]) if sentences else ""


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
        limit = budget_words(advice.budget_per_month, advice.currency)
        return f"No placement{limit} reaches {goal}: every interval lies beyond it."
    verdict = _SAID[advice.goal.verdict(advice.reaching.prediction)]
    start = verdict.format(goal=goal, Goal=goal[0].upper() + goal[1:])
    where = moved_words(advice.reaching) or "as recorded"
    price = cost_words(advice.reaching.cost_per_month, advice.currency)
    return f"{start}: {where}, {_figure(advice.goal, advice.reaching)}, {price}."


def goal_text(goal: Goal) -> str:
    """``2 000 transactions a second``, ``a 99th percentile of 5 ms``."""
    if goal.what == "tps":
        return f"{numbers.paper_figure_text(goal.bound)} transaction{'' if goal.bound == 1 else 's'} a second"
    return f"a {goal.what.removeprefix('p')}th percentile of {numbers.latency_text(goal.bound)}"


def _figure(goal: Goal, option: PricedPlacement) -> str:
    """The figure that the goal is about, with its interval."""
    figure = goal.figure(option.prediction)
    if figure is None:
        return "no figure"
    by_rate = goal.what == "tps"
    shown = numbers.significant_text if by_rate else numbers.latency_text
    ends = numbers.range_text(shown(figure.low), shown(figure.high))
    return f"{shown(figure.value)} ({ends}){' a second' if by_rate else ''}"


_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def space_sentences(advice: Advice) -> list[str]:
    """What the recommended placement has to hold, where settings let files grow, and what fills a device."""
    option = advice.decision.option
    moved = {**option.placement, **option.taken_along}
    spaces = [space for space in advice.spaces if space.role in moved]
    growing = [
        f"{capitalized(ROLE_NAMES[space.role])} may need {numbers.size_text(space.size_bytes)}, "
        f"now {numbers.size_text(space.now_bytes)}: "
        f"{join_words([f'{part.what} {numbers.size_text(part.size_bytes)}' for part in space.parts])}."
        for space in spaces
        if space.parts and space.size_bytes > space.now_bytes
    ]
    temporary = [
        f"The temporary files took {numbers.size_text(space.now_bytes)} while recorded: what larger sorts "
        "and joins need is not known."
        for space in spaces
        if space.role is Role.TEMP
    ]
    failure = "writes fail" if advice.run.engine == "sqlite" else "the server stops"
    return [*growing, *temporary] + [
        f"{capitalized(filling.when)}, {ROLE_NAMES[filling.role]} fills the free "
        f"{numbers.size_text(filling.free_bytes)} of {filling.device} after "
        f"{_span(filling.full_after_s)} at the predicted rate, and {failure}."
        for filling in advice.filling
    ]


def _span(value_s: float) -> str:
    """A time that a person plans with: ``7 minutes``, ``5 hours``, ``12 days``."""
    for unit_s, name in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        if value_s >= 2 * unit_s:
            return numbers.counted_noun(value_s / unit_s, name)
    return f"{value_s:.0f} s"


_UNUSABLE = "This recording is not usable: do not act on what follows."
_DEVICE_PARTS = {"log", "read", "write"}
_TIMES = TIME_NAMES | {"log": "waiting for the log"}


def doubt_texts(
    usable: bool, remarks: Sequence[UsabilityRemark], first: str = _UNUSABLE, of: str = ""
) -> list[Block]:
    """What makes a recording unusable or doubtful and what to do, before anything else; or nothing.

    Args:
        usable: whether the recording is.
        remarks: on the recording.
        first: sentence that says that it is not.
        of: name of the database, where there are several.
    """
    if usable:
        name = f", {of}" if of else ""
        doubts = (f"Doubt{name}: {remark.reason}. {capitalized(remark.fix)}." for remark in remarks)
        return [Text(doubt, Tone.WARNING) for doubt in doubts]
    return [
        Text(first, Tone.HEADLINE),
        *(Text(f"{capitalized(remark.reason)}: {remark.fix}.", Tone.WARNING) for remark in remarks),
    ]


def decision_headline(advice: Advice, interval: bool = True) -> str:
    """What to do, its gain, with its ``interval``, and its price; or that nothing helps, and what would."""
    return setting_headline(advice.instead, interval) if advice.instead else paid_headline(advice, interval)


def paid_headline(advice: Advice, interval: bool = True) -> str:
    """The same of the option, also where a setting is recommended in its place."""
    decision = advice.decision
    if decision.stays:
        claim, reason = staying_claim(advice)
        return f"{claim}: {reason}"
    option = decision.option
    gain = gain_words(option.prediction, interval)
    if decision.why == "cheaper":
        gain = f"no difference that can be told ({gain})"
    price = price_words(option, advice.currency)
    return f"Move {move_words(option.placement)}{_as_one(decision)}: {gain} {price}."


def setting_headline(move: SettingChange, interval: bool) -> str:
    """``Set synchronous_commit=off: 9 times the throughput for nothing, if 0.6 s of commits may be lost.``"""
    if_lost = (
        f", if {numbers.seconds_text(move.loses_s)} of commits may be lost in a crash" if move.loses_s else ""
    )
    return f"Set {move.setting}: {gain_words(move.prediction, interval)} for nothing{if_lost}."


def price_words(option: PricedPlacement, currency: str) -> str:
    """``for 12 $/month``, with the rent that ends."""
    price = cost_words(option.cost_per_month, currency)
    if option.credit_per_month == 0:
        return price
    new, credit = (
        money_words(amount, currency) for amount in (option.new_per_month, option.credit_per_month)
    )
    return f"{price} ({new} for new devices, {credit} of rent ends)"


def moved_words(option: PricedPlacement) -> str:
    """``the log to gp3``, with the idle roles that its price needs moved too; empty if nothing moves."""
    return move_words({**option.placement, **option.taken_along})


def roles_moved_along_words(option: PricedPlacement) -> str:
    """The roles that have to move too, before a recorded volume can be given up; empty if none has to."""
    if not option.taken_along:
        return ""
    return f"move {move_words(option.taken_along)} too, so that the rent of the recorded volume ends"


def roles_moving_together_sentences(decision: Decision) -> list[str]:
    """Which roles move as one, and why."""
    return [
        f"{capitalized(role_names(group.roles))} can only move together: {group.because}."
        for group in decision.together
    ]


def volatile_device_sentence(advice: Advice) -> str:
    """That a recommended device keeps nothing without power; empty if none is like that."""
    option = advice.decision.option
    return lost_files_sentence({**option.placement, **option.taken_along})


def _as_one(decision: Decision) -> str:
    moved = decision.option.placement
    return " together" if any(moved.keys() >= set(group.roles) for group in decision.together) else ""


def staying_claim(advice: Advice) -> tuple[str, str]:
    """That every file stays where it is, as a claim and its reason, with what would help."""
    decision, fastest = advice.decision, advice.fastest
    if decision.why == "goal" and advice.goal:
        return "Leave the files where they are", f"as recorded, they reach {goal_text(advice.goal)}."
    if decision.why == "none" or fastest is None:
        reason = _no_other(advice)
    elif decision.why == "median":
        reason = "what is faster makes the median latency longer"
        return "Nothing you can buy here helps every transaction", f"{reason}.{_remedies(decision)}"
    else:
        reason = f"{_best_of(advice, fastest)}{_because(advice)}"
    claim = "is sure to help" if _is_hidden(fastest) else "helps"
    return f"Nothing you can buy here {claim}", f"{reason}.{_remedies(decision)}"


def _is_hidden(fastest: PricedPlacement | None) -> bool:
    """Whether the error of the model hides a gain that a trial may show."""
    speedup = fastest and fastest.prediction.speedup
    return bool(speedup and speedup.value > MARGIN)


def _no_other(advice: Advice) -> str:
    whole = [left for left in advice.left_out if not left.roles]
    if any(left.least_cost_per_month is not None for left in whole):
        limit = budget_words(advice.budget_per_month, advice.currency)
        return f"no other placement costs {limit.removeprefix(' for ')}"
    if whole:
        return f"no file fits on {join_words([left.device for left in whole])}"
    if advice.tried <= 1:
        return "no file asks enough of a device to be worth a move"
    return "no other placement could be replayed"


def _best_of(advice: Advice, fastest: PricedPlacement) -> str:
    if fastest.stays or fastest.prediction.speedup is None:
        return f"none of {tried_placements_words(advice)} is faster"
    verb = "is" if fastest.prediction.once else "gives"
    gain = f"{verb} {gain_words(fastest.prediction)}"
    if not _is_hidden(fastest):
        return f"the fastest of {tried_placements_words(advice)} {gain}, no difference that can be told"
    trial = "a gain that only a trial on a copy of the server can confirm"
    return (
        f"the fastest of {tried_placements_words(advice)}, {move_words(fastest.placement)}, {gain}, {trial}"
    )


def _because(advice: Advice) -> str:
    if not advice.decision.time:
        return ""
    first = advice.decision.time[0]
    if _is_hidden(advice.fastest):
        return f"; {_share(first)}"
    shortens = "none of these placements" if advice.left_out else "no device named here"
    device = f", which {shortens} shortens" if first.part in _DEVICE_PARTS else ""
    return f", because {_share(first)}{device}"


def _share(time_share: TimeShare) -> str:
    part = time_part_name(time_share.part)
    return f"{numbers.percent_text(time_share.share)} of the sessions' time is spent {part}"


def _remedies(decision: Decision) -> str:
    """What would help, for the greatest parts of the time."""
    known = [share for share in decision.time if share.remedy]
    remedies = [
        share.remedy
        if share is decision.time[0] and decision.why == "alike"  # which has named its share
        else f"{share.remedy} ({numbers.percent_text(share.share)} {time_part_name(share.part)})"
        for share in known
    ]
    return f" What would: {'; '.join(remedies)}." if remedies else ""


def time_part_name(part: str) -> str:
    """A part of the sessions' time in words: ``waiting for a core``."""
    return _TIMES.get(part, part)


def tried_placements_words(advice: Advice) -> str:
    """``all 16 placements``, ``4 096 placements that were tried for 50 $/month or less``."""
    many = numbers.counted_noun(advice.tried, "placement")
    limit = budget_words(advice.budget_per_month, advice.currency)
    if advice.tried == 1:
        return f"the only placement{limit}"
    return f"all {many}{limit}" if advice.exact else f"{many} that were tried{limit}"


def budget_words(budget_per_month: float | None, currency: str) -> str:
    """`` for 50 $/month or less``; empty without a budget."""
    return "" if budget_per_month is None else f" for {money_words(budget_per_month, currency)} or less"
