"""Advice in words and as a document, with the moves of settings, memory and machines."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Advice, LeftOut, Move, Option, Wear
from tierwise.advise.alternatives import MeasuredHarm, SettingBound, SettingMove, equal_memory
from tierwise.advise.growing import Growing, GrowthAnswer, GrowthLimit
from tierwise.advise.option import MARGIN, lengthens_median, most_worth_paying
from tierwise.model import numbers
from tierwise.model.names import capitalized, join
from tierwise.model.placement import ROLE_NAMES
from tierwise.predict import Estimate
from tierwise.predict.answer import SETTINGS_UNCALIBRATED
from tierwise.predict.devices import ephemeral, lost_at_stop
from tierwise.report import document as doc
from tierwise.report.recording.decision_words import (
    along_words,
    bill_table,
    cost,
    goal_sentence,
    headline,
    money,
    money_needed,
    months,
    moved_words,
    paid_headline,
    price_text,
    price_texts,
    price_words,
    space_sentences,
    together_sentences,
    tried_words,
    unusable_texts,
    volatile_sentence,
)
from tierwise.report.recording.prediction import (
    advice_cautions,
    chief_figure,
    gain_cells,
    gain_headings,
    gain_words,
    lost_sentence,
    moving,
    notes,
    recorded_sentence,
)
from tierwise.report.recording.tables import tables_blocks

_MONTHS_PER_YEAR = 12
_TB = 1e12


def further_sentences(advice: Advice) -> list[str]:
    """What goes with the decision, alternatives, the ladder, devices left out, the goal, worn devices."""
    option = advice.decision.option
    along = along_words(option)
    sentences = [
        f"What can be bought: {paid_headline(advice)}" if advice.instead else "",
        volatile_sentence(advice),
        *together_sentences(advice.decision),
        f"{capitalized(along)}." if along else "",
        *space_sentences(advice),
        price_sentence(advice),
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
        return f"That is the fastest of {tried_words(advice)}."
    if step.low <= 1:
        return f"None of {tried_words(advice)} is faster than this one by more than chance."
    gain, price = gain_words(fastest.prediction), cost(fastest.cost_per_month, advice.currency)
    other = f"The fastest of {tried_words(advice)}, {moved_words(fastest)}"
    if lengthens_median(fastest.prediction, advice.recorded):
        return f"{other}, {_median(advice)}: {gain} {price}."
    if advice.decision.why == "goal":
        return f"{other}, gives {gain} {price}."
    margin = numbers.percent(MARGIN - 1)
    why = _too_dear(advice, fastest, step.value)
    why = why or f"Predictions err by {margin} in the median, so this is no reason to choose it."
    if not fastest.prediction.faster:
        why = "It cannot be told from no gain, so this is no reason to choose it."
    memory = lost_at_stop(fastest.placement) and not ephemeral(fastest.placement)
    if memory and not lost_at_stop(option.placement):
        why = "It keeps files in memory, which a power cut or a restart loses."
    return f"{other}, has {numbers.ratio(step.value)} times that rate: {gain} {price}. {why}"


def _too_dear(advice: Advice, fastest: Option, gain: float) -> str:
    """That the fastest costs more than its gain is worth; empty if not, or if the user has set a limit."""
    now, rent = advice.decision.option.cost_per_month, advice.rent_per_month
    if gain <= MARGIN or rent is None or advice.budget_per_month is not None or fastest.cost_per_month <= now:
        return ""
    return f"{_more_machines(rent, advice.currency)}: --budget allows what this costs."


def price_sentence(advice: Advice) -> str:
    """That the recommended placement costs more than its gain is worth; empty if not."""
    option, rent, now = advice.decision.option, advice.rent_per_month, advice.costs_now_per_month or 0.0
    speedup = option.prediction.speedup
    limited = advice.budget_per_month is not None or advice.decision.why == "goal"
    if speedup is None or rent is None or limited:
        return ""
    offers = [(now, 1.0), (now + option.cost_per_month, speedup.value)]
    if option.cost_per_month <= 0 or most_worth_paying(offers, rent) > now:
        return ""
    return f"Nothing cheaper helps, but this is dear. {_more_machines(rent, advice.currency)}."


def _more_machines(rent_per_month: float, currency: str) -> str:
    each = money(rent_per_month, currency)
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
    return f"{numbers.microseconds(then.value)}, now {numbers.microseconds(now.value)}"


def simpler_sentence(advice: Advice) -> str:
    """The placement with fewer moves that is as good; the reader weighs its cost against the moves."""
    simpler = advice.simpler
    if simpler is None or simpler.stays or advice.decision.why == "goal":
        return ""
    offer = f"{gain_words(simpler.prediction)} {price_words(simpler, advice.currency)}"
    offer = "; ".join(filter(None, [offer, along_words(simpler)]))
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
    """The candidates that are over the budget, and those that are too small, whole or for some roles."""
    dear = [
        f"{_left_out(left)} (at least {money_needed(left.least_cost_per_month, advice.currency)})"
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
    return [f"Left out, since {why}: {join(names)}.{more}" for why, names, more in reasons if names]


def _left_out(left: LeftOut) -> str:
    """``ssd-nvme-dc``, ``the log on ssd-nvme-dc``."""
    return (
        f"{join([ROLE_NAMES[role] for role in left.roles])} on {left.device}" if left.roles else left.device
    )


def _wear_sentences(worn: Sequence[Wear], once: bool) -> list[str]:
    """Sentences on devices that would not last five years under this load without a pause."""
    years = 5 * _MONTHS_PER_YEAR
    return [
        _wear_sentence(wear, once)
        for wear in worn
        if any(lasts is not None and lasts < years for lasts in (wear.months, wear.predicted_months))
    ]


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


SETTINGS_TITLE = "Settings instead"
_CAUTION = (
    "A setting costs nothing, and most give up durability: none is recommended unless --may-lose allows it."
)


def setting_blocks(advice: Advice, titled: bool = True) -> list[doc.Block]:
    """Each setting with its gain and what may be lost, then how to set it; nothing without one."""
    bounds = _setting_bounds(advice)
    if not advice.settings:
        return [*([doc.Text(SETTINGS_TITLE, doc.Tone.HEADLINE)] if titled and bounds else []), *bounds]
    untried = any(SETTINGS_UNCALIBRATED in move.prediction.warnings for move in advice.settings)
    steps = [_steps(move) for move in advice.settings if move.worthwhile]
    return [
        _settings_table(advice, SETTINGS_TITLE if titled else ""),
        doc.Text(_CAUTION, doc.Tone.QUIET),
        *([doc.Text(f"{capitalized(SETTINGS_UNCALIBRATED)}.", doc.Tone.QUIET)] if untried else []),
        *([doc.Bullets(steps)] if steps else []),
        *bounds,
    ]


def _setting_bounds(advice: Advice) -> list[doc.Block]:
    """Settings that are not predicted: the bound with the steps, or why there is none."""
    sentences = []
    for setting in advice.setting_bounds:
        if setting.bound is None:
            sentences.append(f"{setting.why}.")
            continue
        price = cost(setting.cost_per_month, advice.currency)
        at_most = f"at most {numbers.ratio(setting.bound.speedup)} times as fast, {price}"
        sentences.append(
            f"{setting.setting}: {at_most}: {setting.bound.because}. {capitalized(_how(setting))} "
            f"Source: {setting.source}"
        )
    if not sentences:
        return []
    return [
        doc.Text("Not predicted, since the recording tells a bound of the gain alone, or nothing:"),
        doc.Bullets(sentences),
    ]


def _settings_table(advice: Advice, title: str) -> doc.Table:
    once = advice.recorded.once
    gains = gain_headings(advice.run.unit, advice.currency, once)
    figures = (*gains, "may lose", "power cuts\nthat lost")
    shown = doc.table([], figures, title, names=["setting"], after=["what may be lost"])
    for move in advice.settings:
        shown.add(
            move.setting,
            *gain_cells(move, once),
            "no bound" if move.loses_s is None else doc.figure(move.loses_s, numbers.seconds),
            _cuts(move),
            move.loses,
            tone=doc.Tone.PLAIN if move.worthwhile else doc.Tone.QUIET,
        )
    return shown


def _steps(move: SettingMove) -> str:
    """How to set it, how to go back, and what power cuts have shown."""
    sentences = [f"{move.setting}: {_how(move)}"]
    if measured := move.measured:
        sentences.append(
            f"Measured: {measured.harmed} of {measured.cuts} power cuts lost acknowledged commits or damaged "
            f"the database ({_share(measured)} of such cuts)."
        )
    return " ".join([*sentences, f"Source: {move.source}"])


def _how(move: SettingMove | SettingBound) -> str:
    """What may be lost, how to set it, how to go back, and whether the database starts again."""
    again = "It needs a restart." if move.restart else "It needs no restart."
    steps = f"{move.loses}. To set it: {move.there} To go back: {move.back} {again}"
    return f"{steps} {move.note}".rstrip()


def _cuts(move: SettingMove) -> doc.Cell:
    """``75 of 80`` with the interval of the share."""
    measured = move.measured
    if measured is None:
        return doc.Cell("not tested")
    return doc.Cell(
        f"{measured.harmed} of {measured.cuts}", below=(doc.Text(_share(measured), doc.Tone.QUIET),)
    )


def _share(harm: MeasuredHarm) -> str:
    return numbers.span(numbers.percent(harm.low), numbers.percent(harm.high))


MEMORY_TITLE = "Memory instead"


def memory_blocks(advice: Advice, titled: bool = True) -> list[doc.Block]:
    """Each size of memory with its gain and price, and how it compares with the move; nothing without one."""
    if not advice.memory:
        return []
    return [
        _memory_table(advice, MEMORY_TITLE if titled else ""),
        doc.Text(_comparison(advice)),
        *([price_text("memory", advice.memory_price)] if advice.memory_price else []),
    ]


def _memory_table(advice: Advice, title: str) -> doc.Table:
    once = advice.recorded.once
    figures = ("more", "engine's\nbuffer", *gain_headings(advice.run.unit, advice.currency, once))
    shown = doc.table([], [*figures, ""], title, names=["memory"])
    for move in advice.memory:
        shown.add(
            numbers.size(move.memory_bytes),
            doc.figure(move.added_bytes or None, numbers.size),
            numbers.NONE if move.buffer_bytes is None else numbers.size(move.buffer_bytes),
            *gain_cells(move, once),
            "holds all tables and indexes" if move.holds_all else "",
            tone=doc.Tone.PLAIN if move.worthwhile else doc.Tone.QUIET,
        )
    return shown


def _comparison(advice: Advice) -> str:
    """What memory costs that gains as much as the recommended move."""
    option = advice.decision.option
    first = next((move for move in advice.memory if move.worthwhile), None)
    if first is None:
        return "More memory gains nothing that can be told from chance."
    if option.stays:
        where = f"{numbers.size(first.added_bytes)} more memory" if first.added_bytes else "no more memory"
        return f"No move is recommended. The smallest size that helps needs {where}."
    same = equal_memory(advice.memory, option)
    if same is None:
        return "No size of memory gains as much as the recommended move."
    cost = ""
    if same.cost_per_month is not None:
        then, now = numbers.cents(same.cost_per_month), numbers.cents(option.cost_per_month)
        cost = f", for {then} {numbers.symbol(advice.currency)} a month instead of {now}"
    if not same.added_bytes:
        return f"A larger buffer in the memory that is there gains as much as the recommended move{cost}."
    return f"{numbers.size(same.added_bytes)} more memory gains as much as the recommended move{cost}."


def machine_blocks(advice: Advice, titled: bool = True) -> list[doc.Block]:
    """Each other machine with its gain and price; nothing without one."""
    if advice.instance is None:
        return []
    if not advice.machines:
        return [doc.Text(f"No machine larger than {advice.instance.name} is known: name it with --instance.")]
    once = advice.recorded.once
    figures = ["vCPUs", "GiB", *gain_headings(advice.run.unit, advice.currency, once)]
    moved = any(move.with_moves for move in advice.machines)
    figures += ["with the\nmoves"] if moved else []
    machine_table = doc.table(["machine"], figures, "Machine instead" if titled else "")
    for move in advice.machines:
        machine_table.add(
            move.instance,
            doc.figure(move.vcpus, numbers.significant),
            doc.figure(move.memory_gib, numbers.significant),
            *gain_cells(move, once),
            *([chief_figure(move.with_moves, once) if move.with_moves else numbers.NONE] if moved else []),
            tone=doc.Tone.PLAIN if move.worthwhile else doc.Tone.QUIET,
        )
    price, rents = numbers.per_month(advice.currency), advice.instance.currency
    text = f"Compared with {advice.instance.name}, every file where it is; {price} is the "
    text += "difference of the rents."
    if rents != advice.currency and advice.instance.per_month is not None:
        text += f" It is not known: these are in {rents}, and the prices of devices in {advice.currency}."
    return [machine_table, doc.Text(text, doc.Tone.QUIET)]


def growing_blocks(advice: Advice) -> list[doc.Block]:
    """The answer to the first limit, then at which growth each resource no longer suffices."""
    growing = advice.growing
    if growing is None:
        return []
    title = f"Growth to {growing.factor:g} times the data and the load"
    shown = doc.table([], ["suffices up to\ntimes", f"{advice.run.unit}/s"], title, names=["what"])
    for limit in growing.limits:
        is_rate = limit.factor is not None and limit.what not in ("space", "wear")
        shown.add(
            name_of(limit),
            _times(growing, limit.factor),
            doc.figure(growing.rate_per_s * (limit.factor or 0) if is_rate else None, numbers.significant),
            tone=doc.Tone.PLAIN if limit.factor is not None else doc.Tone.QUIET,
        )
    return [*(doc.Text(sentence) for sentence in growing_sentences(advice, growing)), shown]


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
    if growing.split:
        names = join([ROLE_NAMES[role] for role in growing.split])
        sentences.append(f"When the devices of {names} are full is not known: these files lie on several.")
    return sentences


def answer_sentence(advice: Advice, first: GrowthLimit, answer: GrowthAnswer) -> str:
    """``The cheapest answer: move the log to ssd-nvme-dc, for 8 $/month.``"""
    which, price = "An", ", at a price that is not known"
    if answer.cost_per_month is not None:
        which, price = "The cheapest", f", {cost(answer.cost_per_month, advice.currency)}"
    if answer.beyond_budget and advice.budget_per_month is not None:
        price += f", beyond the budget of {money(advice.budget_per_month, advice.currency)}"
    factor = advice.growing.factor if advice.growing else 1.0
    if answer.placement:
        caution = lost_sentence(answer.placement)
        return f"The cheapest answer: move {moving(answer.placement)}{price}. {caution}".rstrip()
    if answer.cores:
        machine = f": {answer.instance}{price}" if answer.instance else ""
        return f"You need {answer.cores} cores for {factor:g} times the load{machine}."
    if answer.instance:
        return f"{which} answer: {answer.instance}{price}."
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


_MOST_MOVES = 12


def advice_document(advice: Advice) -> list[doc.Block]:
    """Whether it may be followed, the decision; then the ladder, single moves, its devices, and warnings."""
    decision = advice.decision
    blocks: list[doc.Block] = unusable_texts(advice.usable, advice.remarks)
    blocks += [doc.Text(headline(advice), doc.Tone.HEADLINE)]
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
    blocks += growing_blocks(advice)
    blocks += tables_blocks(advice.tables) if advice.tables else []
    options = {"The recommended placement": decision.option}
    if advice.reaching and advice.reaching.placement != decision.option.placement:
        options["The goal"] = advice.reaching
    for name, option in options.items():
        if not option.stays:
            blocks += [_devices(name, option), bill_table("What it costs a month", option, advice.currency)]
    blocks += [doc.Text(sentence) for sentence in durability_sentences(advice)]
    blocks += price_texts(advice.prices)
    blocks += [doc.Text(f"Note: {note}.", doc.Tone.QUIET) for note in advice.notes]
    return [*blocks, *notes([decision.prediction]), *advice_cautions(advice)]


def _moves(title: str, moves: Sequence[Move], currency: str, ladder: bool) -> doc.Table:
    unit = numbers.per_month(currency)
    figures = ("times faster\nin all" if ladder else "times\nfaster", "this step\n(seeds)", unit, "GB")
    moves_table = doc.table(["move"], [*figures, "more/s\nper GB", f"more/s\nper {unit}"], title)
    for move in moves:
        gain_per_cost = (
            doc.figure(move.gain_per_cost, numbers.significant) if move.cost_per_month > 0 else "free"
        )
        moves_table.add(
            f"{', '.join([move.role, *move.along])} to {move.device}",
            doc.estimate(move.prediction.speedup, numbers.ratio),
            doc.estimate(move.step, numbers.ratio),
            doc.figure(move.cost_per_month, numbers.cents),
            doc.figure(move.size_bytes / 1e9 if move.size_bytes else None, numbers.significant),
            doc.figure(move.gain_per_gb, numbers.significant),
            gain_per_cost,
            tone=doc.Tone.PLAIN if move.worthwhile else doc.Tone.QUIET,
        )
    return moves_table


def _devices(name: str, option: Option) -> doc.Table:
    """Each new device of a placement: its roles, size, written volume and lifetime."""
    figures = ["GB", "TB written\na month", "worn out\nafter", "at the\npredicted rate"]
    devices_table = doc.table(["device", "holds"], figures, name)
    worn = {wear.device: wear for wear in option.wear}
    places = {**option.placement, **option.taken_along}
    for device, size_bytes in option.size_bytes.items():
        roles = [role for role, place in places.items() if place == device]
        wear = worn.get(device)
        devices_table.add(
            device,
            ", ".join(roles),
            doc.figure(size_bytes / 1e9, numbers.significant),
            doc.figure(wear.written_bytes_per_month / _TB if wear else None, numbers.significant),
            months(wear.months) if wear else numbers.NONE,
            months(wear.predicted_months) if wear else numbers.NONE,
        )
    return devices_table
