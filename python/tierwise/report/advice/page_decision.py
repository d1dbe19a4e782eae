"""The decision in words and figures: one sentence, before and after, its basis, risks and goal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from tierwise.advise import Advice, DeviceWear
from tierwise.advise.durability import NOT_TESTED, device_death_outcomes, device_durability
from tierwise.model import numbers
from tierwise.model.names import capitalized, group_by_key, join_words
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Estimate, Prediction, resolve_device
from tierwise.predict.named_devices import roles_lost_at_stop
from tierwise.report import document as doc
from tierwise.report.advice.advice_survey import AdviceSurvey
from tierwise.report.recording import decision_words
from tierwise.report.recording.advice_report import (
    fastest_sentence,
    left_out_sentences,
    simpler_sentence,
    too_dear_sentence,
)
from tierwise.report.recording.decision_words import (
    LONG_MONTHS,
    bill_table,
    cost_words,
    goal_sentence,
    lifetime_words,
    moved_words,
    space_sentences,
    stale_price_sentence,
)
from tierwise.report.recording.prediction_report import (
    advice_cautions,
    bound_sentence,
    gain_words,
    move_words,
    recorded_sentence,
    sped_up_quantity,
)
from tierwise.report.recording.tables_report import listed_relations, page_table_sets, table_set_title


@dataclass(frozen=True)
class AlternativeChoice:
    """One simulated answer; no other combination has one.

    Attributes:
        fields: for the scripts of the page: ``number`` of the placement that it was simulated with;
            ``settings``, indexes of the settings that are changed; of tables, ``title``, ``device``,
            ``rows``, indexes of the listed tables that move, and ``command`` that predicts it.
        prediction: its answer.
        cost_per_month: more than is paid now.
        wear: of the new devices.
    """

    fields: dict[str, Any]
    prediction: Prediction
    cost_per_month: float
    wear: Sequence[DeviceWear]


def alternative_choices(subject: AdviceSurvey, *, live: bool = False) -> list[AlternativeChoice]:
    """The settings with the recorded and with the advised placement, then the sets of tables.

    On a ``live`` page tables are no choice: the server answers placements of roles, with its sliders.
    """
    return [*_settings(subject), *([] if live else _tables(subject))]


def _settings(subject: AdviceSurvey) -> Iterator[AlternativeChoice]:
    advised = subject.survey.number(subject.placement)
    for place, move in enumerate(subject.advice.settings):
        for number, answer in ((0, move.prediction), (advised, move.with_move)):
            if number is not None and answer is not None and answer.rate_per_s is not None:
                fields = {"number": number, "settings": [place]}
                yield AlternativeChoice(fields, answer, subject.cost_per_month(answer), subject.wear(answer))


def _tables(subject: AdviceSurvey) -> Iterator[AlternativeChoice]:
    """In the order of the page's table of sets; one without an answer has dashes there and is no choice."""
    advice = subject.advice.tables
    if advice is None:
        return
    names = f" --names {shlex.quote(str(subject.names))}" if subject.names else ""
    places = {row.name: place for place, row in enumerate(listed_relations(advice))}
    for row, (device, page_set) in enumerate(page_table_sets(advice)):
        if page_set.prediction.rate_per_s is None:
            continue
        placed = ",".join(f"{pattern}={device}" for pattern in page_set.patterns)
        fields = {
            "number": 0,
            "settings": [],
            "row": row,
            "title": table_set_title(page_set),
            "device": device,
            "rows": [places[name] for name in page_set.names if name in places],
            "command": f"{subject.command} --place {shlex.quote(placed)}{names}",
        }
        yield AlternativeChoice(
            fields, page_set.prediction, page_set.bill.per_month, [page_set.wear] if page_set.wear else []
        )


State = Literal["kept", "flush", "lost", "unknown"]
"""What a power cut leaves of completed writes: all, those that were flushed, nothing, or not known."""
STATES: dict[State, str] = {
    "kept": "keeps completed writes",
    "flush": "keeps flushed writes",
    "lost": "loses everything",
    "unknown": "not known",
}
_MIRRORED = {"raid1", "raid10", "raid5"}


@dataclass(frozen=True)
class DeviceRisk:
    """The risks of one device.

    Attributes:
        state: what a power cut leaves.
        power_cut: the same as a sentence, with its basis.
        tested: what studies of power cuts have shown, in a few words.
        death: what the death of one drive takes with it, and what studies have shown of it.
        alone: whether one drive is a single point of failure.
    """

    state: State
    power_cut: str
    tested: str
    death: str
    alone: bool


def device_risk(device: str, engine: str = "", roles: Collection[Role] = ()) -> DeviceRisk:
    """The risks of a device: by its profile, and by what studies have shown for an engine.

    Args:
        device: its name.
        engine: name of the engine; empty for all.
        roles: whose files it holds, for the death of the device.
    """
    (harm,) = device_durability({Role.LOG: device}, engine or None)
    power_cut = f"{harm.fact}; {harm.shown}"
    tested = f"{harm.harmed_of_made} cuts did harm" if harm.cuts else NOT_TESTED
    if device == RECORDED:
        return DeviceRisk("unknown", power_cut, tested, "not known", False)
    profile = resolve_device(device).profile
    lost = bool(roles_lost_at_stop({Role.LOG: device}))
    state: State = "lost" if lost else "flush" if profile.write_cache else "kept"
    death, alone = _death(profile.kind, profile.fields)
    if alone:
        shown = device_death_outcomes(engine, roles)
        death = ". ".join([death, *(f"{role.capitalize()}: {words}" for role, words in shown.items())])
    return DeviceRisk(state, power_cut, tested, death, alone)


def _death(kind: str, fields: Mapping[str, Any]) -> tuple[str, bool]:
    """What the death of a drive takes, by a profile with what it took over from others."""
    if kind == "volume":
        return "its provider keeps copies within one zone; a lost zone or account takes them all", False
    if kind == "array":
        level = fields.get("level")
        if level in _MIRRORED and fields.get("failed_members"):
            return "one member is dead already: the death of another may take all its files", True
        if level in _MIRRORED:
            return f"survives the death of one member ({str(level).upper().replace('RAID', 'RAID ')})", False
        return "the death of any member takes all its files (RAID 0)", True
    if kind == "ram":
        return "a restart takes all its files", True
    return "one drive: its death takes all its files", True


_LEAST_SHOWN = 0.01
_SAME = 1.03
"""Ratio up to which two figures are called the same."""


def money_amount(subject: AdviceSurvey, amount: float, sign: bool = False) -> str:
    """``10 $``; with ``sign``, ``+10 $`` or ``−10 $``."""
    size = abs(round(amount, 2)) or abs(amount)
    mark = "" if not sign or not amount else "+" if amount > 0 else "−"
    if 0 < size < 0.01:
        return f"{mark}less than 0.01\u00a0{subject.currency}"
    return f"{mark}{numbers.amount_text(size)}\u00a0{subject.currency}"


def likely_range(figure: Estimate, shown: Callable[[float], str], unit: str = "") -> str:
    """``likely 1.7 to 2.4 times, best guess 2.0``."""
    return f"likely {shown(figure.low)} to {shown(figure.high)}{unit}, best guess {shown(figure.value)}"


def page_headline(subject: AdviceSurvey) -> str:
    """What to do, what it gains and what it costs; or that nothing helps."""
    if subject.advice.decision.stays:
        return f"{decision_words.staying_claim(subject.advice)[0]}."
    return decision_words.decision_headline(subject.advice, interval=False)


def decision_sentences(subject: AdviceSurvey) -> list[doc.Block]:
    """Why to stay, or the interval and bound; what goes with the move, the goal, and what was left out."""
    chosen, advice, option = subject.option.prediction, subject.advice, subject.option
    blocks: list[doc.Block] = []
    if advice.instead:
        blocks.append(doc.Text(f"What can be bought: {decision_words.paid_headline(advice, interval=False)}"))
    elif advice.decision.stays:
        blocks.append(doc.Text(capitalized(decision_words.staying_claim(advice)[1])))
    if subject.placement and chosen.speedup and not chosen.bounds_only:
        blocks.append(
            doc.Text(
                capitalized(
                    likely_range(chosen.speedup, numbers.ratio_text, f" times {sped_up_quantity(chosen)}")
                )
                + "."
            )
        )
    if subject.placement and chosen.bound:
        blocks.append(doc.Text(f"From the measured waits alone, {bound_sentence(chosen)}."))
    if volatile := decision_words.volatile_device_sentence(advice):
        blocks.append(doc.Text(volatile, doc.Tone.WARNING))
    blocks += [
        doc.Text(sentence) for sentence in decision_words.roles_moving_together_sentences(advice.decision)
    ]
    blocks += [doc.Text(sentence, doc.Tone.WARNING) for sentence in space_sentences(advice)]
    if along := decision_words.roles_moved_along_words(option):
        blocks.append(doc.Text(f"{capitalized(along)}."))
    compared = [too_dear_sentence(advice), fastest_sentence(advice), simpler_sentence(advice)]
    if option.placement != advice.best.placement:
        compared.append(_without_goal(advice))
    others = [
        goal_sentence(advice),
        *compared,
        *left_out_sentences(advice),
        stale_price_sentence(advice.prices),
    ]
    blocks += [doc.Text(sentence, doc.Tone.QUIET) for sentence in others if sentence]
    return blocks


def _without_goal(advice: Advice) -> str:
    best = advice.best
    if best.stays:
        return "Without the goal, the files would stay where they are."
    gain, price = gain_words(best.prediction), decision_words.price_words(best, advice.currency)
    return f"Without the goal: move {moved_words(best)}: {gain} {price}."


def time_table(subject: AdviceSurvey) -> doc.Table:
    """Where the recorded time of the sessions goes, and what would shorten the greatest parts."""
    times = doc.empty_table(["part", "what would shorten it"], ["share"])
    for share in subject.advice.decision.time:
        if share.share >= _LEAST_SHOWN:
            times.add(
                decision_words.time_part_name(share.part),
                share.remedy,
                doc.figure_cell(share.share, numbers.percent_text),
            )
    return times


def before_and_after(subject: AdviceSurvey) -> doc.Table:
    """Rate or time, latencies and cost: now, then, and the difference."""
    rows = doc.empty_table(["figure"], ["now", "then", "difference"])
    now, then = subject.advice.recorded, subject.option.prediction
    if then.once:
        _add(rows, "Time for the work", now.elapsed_s, then.elapsed_s, numbers.seconds_text, times=True)
    else:
        _add(
            rows,
            f"{capitalized(then.unit)} a second",
            now.rate_per_s,
            then.rate_per_s,
            numbers.significant_text,
        )
        _add(rows, "Latency, median", now.p50_us, then.p50_us, numbers.latency_text, times=True)
        _add(rows, "Latency, 99th percentile", now.p99_us, then.p99_us, numbers.latency_text, times=True)
    paid, more = subject.costs.now_per_month, subject.cost_per_month(subject.option.prediction)
    signed = money_amount(subject, more, sign=True)
    shown = (
        (money_amount(subject, paid), money_amount(subject, paid + more))
        if paid is not None
        else ("as today", f"today's {signed}")
    )
    rows.add("Cost a month", *map(doc.Cell, shown), doc.Cell(signed, value=more))
    return rows


def ladder_blocks(subject: AdviceSurvey) -> list[doc.Block]:
    """Every step of the ladder, with what each adds."""
    if not subject.advice.ladder:
        return []
    steps = []
    for step in subject.advice.ladder:
        speedup, price = step.prediction.speedup, cost_words(step.cost_per_month, subject.advice.currency)
        gain = numbers.ratio_text(speedup.value) if speedup else numbers.NONE
        steps.append(f"{capitalized(move_words(step.moved))}: {gain} times in all, {price}")
    return [doc.Bullets(steps)]


def cost_blocks(subject: AdviceSurvey) -> list[doc.Block]:
    """Each part of what the placement costs a month; nothing if it costs nothing."""
    return [bill_table("", subject.option, subject.advice.currency)] if subject.option.bills else []


def basis_blocks(subject: AdviceSurvey) -> list[doc.Block]:
    """The recording, how well it is reproduced, the model's error, and every warning."""
    advice, chosen = subject.advice, subject.option.prediction
    run = advice.run
    many = f"{numbers.count_text(sum(prediction is not None for prediction in subject.survey.predictions))}"
    facts = {
        "Recording": recorded_sentence(run).removesuffix("."),
        "Model": "error measured on this kind of engine and storage, and part of each interval"
        if chosen.validated
        else "not measured on this kind of engine and storage; intervals hold the error found elsewhere",
        "Reproduction": f"rate {numbers.signed_percent_text(run.error)} of the recorded run",
        "Placements": f"{many} simulated, the advised ones under {chosen.seeds} seeds",
    }
    notes = [*subject.survey.notes, *chosen.notes]
    return [
        doc.FactList(facts),
        *advice_cautions(advice),
        doc.Bullets([f"{capitalized(note)}." for note in notes]),
    ]


def risk_blocks(subject: AdviceSurvey) -> doc.Table:
    """Each device that holds files after the move: power cut, wear, death."""
    rows = doc.empty_table([], ["device"], after=["holds", "power cut", "worn out", "death of a drive"])
    worn = {wear.device: wear for wear in subject.wear(subject.option.prediction)}
    moves = subject.moves  # devices that take files come first
    ordered = sorted(subject.advice.run.footprints, key=lambda role: role not in moves)
    for device, roles in group_by_key((moves.get(role, RECORDED), role) for role in ordered).items():
        about, wear = device_risk(device, subject.advice.run.engine, roles), worn.get(device)
        when = "no figure" if wear is None or wear.months is None else _wear_out(wear, date.today())
        name = "recorded devices" if device == RECORDED else device
        rows.add(name, join_words([role.value for role in roles]), about.power_cut, when, about.death)
    return rows


def _wear_out(wear: DeviceWear, today: date) -> str:
    """``18 months (May 2028)``: at the recorded rate of writes, and where it is shorter at the predicted."""
    after = wear.months or 0.0
    text = lifetime_words(after)
    if after < LONG_MONTHS:
        years, month = divmod(today.year * 12 + today.month - 1 + round(after), 12)
        text += f" ({date(years, month + 1, 1):%B %Y})"
    sooner = wear.predicted_months
    return (
        text
        if sooner is None or lifetime_words(sooner) == lifetime_words(after)
        else f"{text}; {lifetime_words(sooner)} at the predicted rate"
    )


def _add(
    table: doc.Table,
    name: str,
    now: Estimate | None,
    then: Estimate | None,
    shown: Callable[[float], str],
    *,
    times: bool = False,
) -> None:
    """Add a figure; of ``times``, less is better."""
    table.add(
        name,
        doc.figure_cell(now.value if now else None, shown),
        _estimate(then, shown),
        _ratio(now, then, times),
    )


def _ratio(now: Estimate | None, then: Estimate | None, times: bool) -> doc.Cell:
    if now is None or then is None or now.value <= 0 or (times and then.low <= 0):
        return doc.Cell(numbers.NONE)
    low, value, high = (end / now.value for end in (then.low, then.value, then.high))
    words, is_better = "times as many", value > 1
    if times:
        words, is_better = ("times shorter", True) if value <= 1 else ("times longer", False)
        low, value, high = (1 / high, 1 / value, 1 / low) if is_better else (low, value, high)
    if 1 / _SAME < value < _SAME:
        return doc.Cell("no difference")
    tone = doc.Tone.BETTER if is_better else doc.Tone.WORSE
    ends = doc.Text(f"likely {numbers.ratio_text(low)} to {numbers.ratio_text(high)}", doc.Tone.QUIET)
    return doc.Cell(f"{numbers.ratio_text(value)} {words}", tone, (ends,))


def _estimate(figure: Estimate | None, shown: Callable[[float], str]) -> doc.Cell:
    if figure is None:
        return doc.Cell(numbers.NONE)
    ends = doc.Text(f"likely {shown(figure.low)} to {shown(figure.high)}", doc.Tone.QUIET)
    return doc.Cell(shown(figure.value), below=(ends,), value=figure.value, low=figure.low, high=figure.high)
