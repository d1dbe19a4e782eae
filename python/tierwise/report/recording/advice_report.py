"""Advice in words and as a document."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Advice, DeviceWear, Move, PricedPlacement, UnusedDevice
from tierwise.advise.priced_placement import MARGIN, highest_worthwhile_cost, lengthens_median_latency
from tierwise.model import numbers
from tierwise.model.names import capitalized, join_words
from tierwise.model.placement import ROLE_NAMES
from tierwise.predict import Estimate
from tierwise.report import document as doc
from tierwise.report.recording.alternatives import (
    growth_blocks,
    machine_blocks,
    memory_blocks,
    setting_blocks,
)
from tierwise.report.recording.decision_words import (
    bill_table,
    budget_needed,
    cost_words,
    decision_headline,
    doubt_texts,
    goal_sentence,
    lifetime_words,
    money_words,
    moved_words,
    paid_headline,
    price_source_texts,
    price_words,
    roles_moved_along_words,
    roles_moving_together_sentences,
    space_sentences,
    tried_placements_words,
    volatile_device_sentence,
)
from tierwise.report.recording.prediction_report import (
    advice_cautions,
    gain_words,
    move_words,
    prediction_notes,
    recorded_sentence,
)
from tierwise.report.recording.tables_report import tables_blocks

_MONTHS_PER_YEAR = 12
_TB = 1e12


def further_sentences(advice: Advice) -> list[str]:
    """What goes with the decision, alternatives, the ladder, devices left out, the goal, worn devices."""
    option = advice.decision.option
    along = roles_moved_along_words(option)
    sentences = [
        f"What can be bought: {paid_headline(advice)}" if advice.instead else "",
        volatile_device_sentence(advice),
        *roles_moving_together_sentences(advice.decision),
        f"{capitalized(along)}." if along else "",
        *space_sentences(advice),
        too_dear_sentence(advice),
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


def fastest_sentence(advice: Advice) -> str:
    """The fastest placement, if it is another, and why it is not recommended."""
    option, fastest, step = advice.decision.option, advice.fastest, advice.step_to_fastest
    if fastest is None or step is None or (option.stays and advice.decision.why != "median"):
        return ""
    if fastest.placement == option.placement:
        return f"That is the fastest of {tried_placements_words(advice)}."
    if step.low <= 1 or fastest.stays:
        return f"None of {tried_placements_words(advice)} is faster than this one by more than chance."
    gain, price = gain_words(fastest.prediction), cost_words(fastest.cost_per_month, advice.currency)
    other = f"The fastest of {tried_placements_words(advice)}, {moved_words(fastest)}"
    if lengthens_median_latency(fastest.prediction, advice.recorded):
        return f"{other}, {_median(advice)}: {gain} {price}."
    if advice.decision.why == "goal":
        return f"{other}, gives {gain} {price}."
    why = _too_dear(advice, fastest, step.value)
    why = why or "That is within the error of predictions, so it is no reason to choose it."
    if not fastest.prediction.faster:
        why = "It cannot be told from no gain, so this is no reason to choose it."
    return f"{other}, has {numbers.ratio_text(step.value)} times that rate: {gain} {price}. {why}"


def _too_dear(advice: Advice, fastest: PricedPlacement, gain: float) -> str:
    """That the fastest costs more than its gain is worth; empty if not, or if the user has set a limit."""
    now, rent = advice.decision.option.cost_per_month, advice.rent_per_month
    if gain <= MARGIN or rent is None or advice.budget_per_month is not None or fastest.cost_per_month <= now:
        return ""
    return f"{_more_machines(rent, advice.currency)}: --budget allows what this costs."


def too_dear_sentence(advice: Advice) -> str:
    """That the recommended placement costs more than its gain is worth; empty if not."""
    option, rent, now = advice.decision.option, advice.rent_per_month, advice.costs_now_per_month or 0.0
    speedup = option.prediction.speedup
    limited = advice.budget_per_month is not None or advice.decision.why == "goal"
    if speedup is None or rent is None or limited:
        return ""
    offers = [(now, 1.0), (now + option.cost_per_month, speedup.value)]
    if option.cost_per_month <= 0 or highest_worthwhile_cost(offers, rent) > now:
        return ""
    return f"Nothing cheaper helps, but this is dear. {_more_machines(rent, advice.currency)}."


def _more_machines(rent_per_month: float, currency: str) -> str:
    each = money_words(rent_per_month, currency)
    return f"More machines gain as much for less, at about {each} each, if the work can be parted"


def _median(advice: Advice) -> str:
    """``makes the median latency 4.1 ms, now 2.0 ms``."""
    then, now = advice.fastest and advice.fastest.prediction.p50_us, advice.recorded.p50_us
    if not then or not now:
        return "makes the median latency longer"
    words = f"makes the median latency {_from_now(then, now)}"
    slowest = advice.fastest and advice.fastest.prediction.p99_us
    if not slowest or not advice.recorded.p99_us or slowest.value >= advice.recorded.p99_us.value:
        return words
    return f"{words}, but the 99th percentile {_from_now(slowest, advice.recorded.p99_us)}"


def _from_now(then: Estimate, now: Estimate) -> str:
    return f"{numbers.latency_text(then.value)}, now {numbers.latency_text(now.value)}"


def simpler_sentence(advice: Advice) -> str:
    """The placement with fewer moves that is as good; the reader weighs its cost against the moves."""
    simpler = advice.simpler
    if simpler is None or simpler.stays or advice.decision.why == "goal":
        return ""
    offer = f"{gain_words(simpler.prediction)} {price_words(simpler, advice.currency)}"
    offer = "; ".join(filter(None, [offer, roles_moved_along_words(simpler)]))
    return f"As good with fewer moves, for more money: {move_words(simpler.placement)}: {offer}."


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
    gain = f"{further}{numbers.ratio_text(move.step.value)} times"
    return f"{move_words(move.moved)}, {gain} {cost_words(move.cost_per_month, currency)}"


def _now_sentence(advice: Advice) -> str:
    if advice.costs_now_per_month is None:
        return ""
    return f"The recorded volumes cost {money_words(advice.costs_now_per_month, advice.currency)} now."


def left_out_sentences(advice: Advice) -> list[str]:
    """The candidates that are over the budget, and those that are too small, whole or for some roles."""
    dear = [
        f"{_left_out(left)} (at least {budget_needed(left.least_cost_per_month, advice.currency)})"
        for left in advice.left_out
        if left.least_cost_per_month is not None
    ]
    none = [left for left in advice.left_out if left.least_cost_per_month is None]
    small = [_left_out(left) for left in none if not left.ephemeral]
    lost = [_left_out(left) for left in none if left.ephemeral]
    allows = " --rebuildable allows that of a replica, or of a database that can be rebuilt."
    reasons = (
        ("the budget pays for no placement with them", dear, ""),
        ("the files with the room asked for do not fit", small, ""),
        ("a stop of the machine takes all files", lost, allows),
    )
    return [f"Left out, since {why}: {join_words(names)}.{more}" for why, names, more in reasons if names]


def _left_out(left: UnusedDevice) -> str:
    """``ssd-nvme-dc``, ``the log on ssd-nvme-dc``."""
    return (
        f"{join_words([ROLE_NAMES[role] for role in left.roles])} on {left.device}"
        if left.roles
        else left.device
    )


def _wear_sentences(worn: Sequence[DeviceWear], once: bool) -> list[str]:
    """Sentences on devices that would not last five years under this load without a pause."""
    years = 5 * _MONTHS_PER_YEAR
    return [
        _wear_sentence(wear, once)
        for wear in worn
        if any(lasts is not None and lasts < years for lasts in (wear.months, wear.predicted_months))
    ]


def _wear_sentence(wear: DeviceWear, once: bool) -> str:
    """Both lifetimes of a device: as much work as recorded, and as much as is predicted."""
    recorded, predicted = (
        f"{lifetime_words(lasts)} ({written / _TB:,.3g} TB a month)"
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


_MOST_MOVES = 12


def advice_document(advice: Advice) -> list[doc.Block]:
    """Whether it may be followed, the decision; then the ladder, single moves, its devices, and warnings."""
    decision = advice.decision
    blocks: list[doc.Block] = doubt_texts(advice.usable, advice.remarks)
    blocks += [doc.Text(decision_headline(advice), doc.Tone.HEADLINE)]
    blocks += [doc.Text(sentence) for sentence in further_sentences(advice)]
    blocks.append(doc.Text(f"Recorded: {recorded_sentence(advice.run)}"))
    if advice.ladder:
        blocks.append(_moves("The ladder: one move after the other", advice.ladder, advice.currency, True))
    if advice.moves:
        shown = sorted(advice.moves[:_MOST_MOVES], key=lambda move: move.gain_per_s, reverse=True)
        more = len(advice.moves) - len(shown)
        blocks.append(_moves("Each move alone", shown, advice.currency, False))
        blocks += [doc.Text(f"{more} more in --format json", doc.Tone.QUIET)] if more else []
    blocks += [*setting_blocks(advice), *memory_blocks(advice), *machine_blocks(advice)]
    blocks += growth_blocks(advice)
    blocks += tables_blocks(advice.tables) if advice.tables else []
    options = {"The recommended placement": decision.option}
    if advice.reaching and advice.reaching.placement != decision.option.placement:
        options["The goal"] = advice.reaching
    for name, option in options.items():
        if not option.stays:
            blocks += [_devices(name, option), bill_table("What it costs a month", option, advice.currency)]
    blocks += [doc.Text(sentence) for sentence in durability_sentences(advice)]
    blocks += price_source_texts(advice.prices)
    blocks += [doc.Text(f"Note: {note}.", doc.Tone.QUIET) for note in advice.notes]
    return [*blocks, *prediction_notes([decision.prediction]), *advice_cautions(advice)]


def _moves(title: str, moves: Sequence[Move], currency: str, ladder: bool) -> doc.Table:
    unit = numbers.per_month_unit(currency)
    figures = ("times faster\nin all" if ladder else "times\nfaster", "this step\n(seeds)", unit, "GB")
    moves_table = doc.empty_table(["move"], [*figures, "more/s\nper GB", f"more/s\nper {unit}"], title)
    for move in moves:
        gain_per_cost = (
            doc.figure_cell(move.gain_per_cost, numbers.significant_text)
            if move.cost_per_month > 0
            else "free"
        )
        moves_table.add(
            f"{', '.join([move.role, *move.along])} to {move.device}",
            doc.estimate_cell(move.prediction.speedup, numbers.ratio_text),
            doc.estimate_cell(move.step, numbers.ratio_text),
            doc.figure_cell(move.cost_per_month, numbers.cents_text),
            doc.figure_cell(move.size_bytes / 1e9 if move.size_bytes else None, numbers.significant_text),
            doc.figure_cell(move.gain_per_gb, numbers.significant_text),
            gain_per_cost,
            tone=doc.Tone.PLAIN if move.worthwhile else doc.Tone.QUIET,
        )
    return moves_table


def _devices(name: str, option: PricedPlacement) -> doc.Table:
    """Each new device of a placement: its roles, size, written volume and lifetime."""
    figures = ["GB", "TB written\na month", "worn out\nafter", "at the\npredicted rate"]
    devices_table = doc.empty_table(["device", "holds"], figures, name)
    worn = {wear.device: wear for wear in option.wear}
    places = {**option.placement, **option.taken_along}
    for device, size_bytes in option.size_bytes.items():
        roles = [role for role, place in places.items() if place == device]
        wear = worn.get(device)
        devices_table.add(
            device,
            ", ".join(roles),
            doc.figure_cell(size_bytes / 1e9, numbers.significant_text),
            doc.figure_cell(wear.written_bytes_per_month / _TB if wear else None, numbers.significant_text),
            lifetime_words(wear.months) if wear else numbers.NONE,
            lifetime_words(wear.predicted_months) if wear else numbers.NONE,
        )
    return devices_table
