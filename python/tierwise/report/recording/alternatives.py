"""What may take the place of a move (settings, memory, machines), and what breaks first when load grows."""

from __future__ import annotations

from tierwise.advise import Advice
from tierwise.advise.alternatives import (
    MeasuredCommitLoss,
    SettingChange,
    SettingGainBound,
    memory_as_fast_as_move,
)
from tierwise.advise.growth import GrowthAdvice, GrowthAnswer, GrowthLimit
from tierwise.model import numbers
from tierwise.model.names import capitalized, join_words
from tierwise.model.placement import ROLE_NAMES
from tierwise.predict.answer import SETTINGS_UNCALIBRATED
from tierwise.report import document as doc
from tierwise.report.recording.decision_words import cost_words, money_words, price_source_text
from tierwise.report.recording.prediction_report import (
    gain_cells,
    gain_headings,
    lost_files_sentence,
    move_words,
    time_or_rate_cell,
)

SETTINGS_TITLE = "Settings instead"
_CAUTION = "A setting costs nothing, and most give up durability"
_NONE_ADVISED = ": none is recommended unless --may-lose allows it"


def setting_blocks(advice: Advice, titled: bool = True) -> list[doc.Block]:
    """Each setting with its gain and what may be lost, then how to set it; nothing without one."""
    bounds = _setting_bounds(advice)
    if not advice.settings:
        return [*([doc.Text(SETTINGS_TITLE, doc.Tone.HEADLINE)] if titled and bounds else []), *bounds]
    untried = any(SETTINGS_UNCALIBRATED in move.prediction.warnings for move in advice.settings)
    steps = [_steps(move) for move in advice.settings if move.worthwhile]
    caution = f"{_CAUTION}{'' if advice.decision.setting else _NONE_ADVISED}."
    return [
        _settings_table(advice, SETTINGS_TITLE if titled else ""),
        doc.Text(caution, doc.Tone.QUIET),
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
        price = cost_words(setting.cost_per_month, advice.currency)
        at_most = f"at most {numbers.ratio_text(setting.bound.speedup)} times as fast, {price}"
        sentences.append(
            f"{setting.setting}: {at_most}: {setting.bound.because}. {capitalized(_how(setting))} "
            f"Source: {setting.source}"
        )
    if not sentences:
        return []
    return [
        doc.Text("Not predicted, since the recording tells a bound of the gain alone, or nothing:"),
        doc.Bullets(list(dict.fromkeys(sentences))),  # one reason may hold for several
    ]


def _settings_table(advice: Advice, title: str) -> doc.Table:
    once = advice.recorded.once
    gains = gain_headings(advice.run.unit, advice.currency, once)
    figures = (*gains, "may lose", "power cuts\nthat lost")
    shown = doc.empty_table([], figures, title, names=["setting"], after=["what may be lost"])
    for move in advice.settings:
        shown.add(
            move.setting,
            *gain_cells(move, once),
            "no bound" if move.loses_s is None else doc.figure_cell(move.loses_s, numbers.seconds_text),
            _cuts(move),
            move.loses,
            tone=doc.Tone.PLAIN if move.worthwhile else doc.Tone.QUIET,
        )
    return shown


def _steps(move: SettingChange) -> str:
    """How to set it, how to go back, and what power cuts have shown."""
    sentences = [f"{move.setting}: {_how(move)}"]
    if measured := move.measured:
        sentences.append(
            f"Measured: {measured.harmed} of {measured.cuts} power cuts lost acknowledged commits or damaged "
            f"the database ({_share(measured)} of such cuts)."
        )
    return " ".join([*sentences, f"Source: {move.source}"])


def _how(move: SettingChange | SettingGainBound) -> str:
    """What may be lost, how to set it, how to go back, and whether the database starts again."""
    again = "It needs a restart." if move.restart else "It needs no restart."
    steps = f"{move.loses}. To set it: {move.there} To go back: {move.back} {again}"
    return f"{steps} {move.note}".rstrip()


def _cuts(move: SettingChange) -> doc.Cell:
    """``75 of 80`` with the interval of the share."""
    measured = move.measured
    if measured is None:
        return doc.Cell("not tested")
    return doc.Cell(
        f"{measured.harmed} of {measured.cuts}", below=(doc.Text(_share(measured), doc.Tone.QUIET),)
    )


def _share(harm: MeasuredCommitLoss) -> str:
    return numbers.range_text(numbers.percent_text(harm.low), numbers.percent_text(harm.high))


def memory_blocks(advice: Advice, titled: bool = True) -> list[doc.Block]:
    """Each size of memory with its gain and price, and how it compares with the move; nothing without one."""
    if not advice.memory:
        return []
    return [
        _memory_table(advice, "Memory instead" if titled else ""),
        doc.Text(_comparison(advice)),
        *([price_source_text("memory", advice.memory_price)] if advice.memory_price else []),
    ]


def _memory_table(advice: Advice, title: str) -> doc.Table:
    once = advice.recorded.once
    figures = ("more", "engine's\nbuffer", *gain_headings(advice.run.unit, advice.currency, once))
    shown = doc.empty_table([], [*figures, ""], title, names=["memory"])
    for move in advice.memory:
        shown.add(
            numbers.size_text(move.memory_bytes),
            doc.figure_cell(move.added_bytes or None, numbers.size_text),
            numbers.NONE if move.buffer_bytes is None else numbers.size_text(move.buffer_bytes),
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
        where = (
            f"{numbers.size_text(first.added_bytes)} more memory" if first.added_bytes else "no more memory"
        )
        return f"No move is recommended. The smallest size that helps needs {where}."
    same = memory_as_fast_as_move(advice.memory, option)
    if same is None:
        return "No size of memory gains as much as the recommended move."
    cost = ""
    if same.cost_per_month is not None:
        then, now = numbers.cents_text(same.cost_per_month), numbers.cents_text(option.cost_per_month)
        cost = f", for {then} {numbers.currency_symbol(advice.currency)} a month instead of {now}"
    if not same.added_bytes:
        return f"A larger buffer in the memory that is there gains as much as the recommended move{cost}."
    return f"{numbers.size_text(same.added_bytes)} more memory gains as much as the recommended move{cost}."


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
    machine_table = doc.empty_table(["machine"], figures, "Machine instead" if titled else "")
    for move in advice.machines:
        machine_table.add(
            move.instance,
            doc.figure_cell(move.vcpus, numbers.count_text),
            doc.figure_cell(move.memory_gib, numbers.significant_text),
            *gain_cells(move, once),
            *(
                [time_or_rate_cell(move.with_moves, once) if move.with_moves else numbers.NONE]
                if moved
                else []
            ),
            tone=doc.Tone.PLAIN if move.worthwhile else doc.Tone.QUIET,
        )
    price, rents = numbers.per_month_unit(advice.currency), advice.instance.currency
    text = f"Compared with {advice.instance.name}, every file where it is; {price} is the "
    text += "difference of the rents."
    if rents != advice.currency and advice.instance.per_month is not None:
        text += f" It is not known: these are in {rents}, and the prices of devices in {advice.currency}."
    elif any(move.cost_per_month is None for move in advice.machines):
        text += f" It is known if --instance FILE gives both machines per_month in {advice.currency}."
    return [machine_table, doc.Text(text, doc.Tone.QUIET)]


def growth_blocks(advice: Advice) -> list[doc.Block]:
    """The answer to the first limit, then at which growth each resource no longer suffices."""
    growing = advice.growing
    if growing is None:
        return []
    title = f"Growth to {growing.factor:g} times the data and the load"
    shown = doc.empty_table([], ["suffices up to\ntimes", f"{advice.run.unit}/s"], title, names=["what"])
    for limit in growing.limits:
        is_rate = limit.factor is not None and limit.what not in ("space", "wear")
        shown.add(
            resource_name(limit),
            _times(growing, limit.factor),
            doc.figure_cell(
                growing.rate_per_s * (limit.factor or 0) if is_rate else None, numbers.significant_text
            ),
            tone=doc.Tone.PLAIN if limit.factor is not None else doc.Tone.QUIET,
        )
    return [*(doc.Text(sentence) for sentence in growth_sentences(advice, growing)), shown]


def growth_sentences(advice: Advice, growing: GrowthAdvice) -> list[str]:
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
            f"Growth: {resource_name(first)} breaks first, {_when(first)}. "
            f"{growth_answer_sentence(advice, first, answer)}"
        )
    if kept is not None:
        load = f"up to {numbers.ratio_text(kept)} times the load" if kept > 1 else "with less than the load"
        sentences.append(f"In all, the recorded placement keeps up {load}, on the recorded cores.")
    if growing.split:
        names = join_words([ROLE_NAMES[role] for role in growing.split])
        sentences.append(f"When the devices of {names} are full is not known: these files lie on several.")
    return sentences


def growth_answer_sentence(advice: Advice, first: GrowthLimit, answer: GrowthAnswer) -> str:
    """``The cheapest answer: move the log to ssd-nvme-dc, for 8 $/month.``"""
    which, price = "An", ", at a price that is not known"
    if answer.cost_per_month is not None:
        which, price = "The cheapest", f", {cost_words(answer.cost_per_month, advice.currency)}"
    if answer.beyond_budget and advice.budget_per_month is not None:
        price += f", beyond the budget of {money_words(advice.budget_per_month, advice.currency)}"
    factor = advice.growing.factor if advice.growing else 1.0
    if answer.placement:
        caution = lost_files_sentence(answer.placement)
        return f"The cheapest answer: move {move_words(answer.placement)}{price}. {caution}".rstrip()
    if answer.cores:
        machine = f": {answer.instance}{price}" if answer.instance else ""
        return f"You need {answer.cores} cores for {factor:g} times the load{machine}."
    if answer.instance:
        return f"{which} answer: {answer.instance}{price}."
    if first.what == "locks":
        return "No device and no core helps: sessions wait for each other."
    return f"None of the candidates keeps up with {factor:g} times the load."


def resource_name(limit: GrowthLimit) -> str:
    """``the device of the log and the data``, ``the cores``."""
    names = join_words([ROLE_NAMES[role] for role in limit.roles])
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
    return f"at {numbers.ratio_text(factor)} times the data and the load" if factor > 1 else "now"


def _times(growing: GrowthAdvice, factor: float | None) -> str:
    if factor is None:
        return f"{growing.factor:g} or more"
    return numbers.ratio_text(factor) if factor > 1 else "now"
