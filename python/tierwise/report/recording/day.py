"""A day of recordings as a document: its timeline, and the advice for its loads."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import DayAdvice, LoadAdvice
from tierwise.model.units import SYMBOLS
from tierwise.predict.timeline import Load, Moment, Timeline
from tierwise.report import numbers
from tierwise.report.document import (
    Block,
    Cell,
    Chart,
    Column,
    ColumnKind,
    Page,
    Section,
    Table,
    Text,
    Tone,
    estimate,
    figure,
    table,
)
from tierwise.report.recording.advice_words import first_sentence
from tierwise.report.recording.decision_words import unusable_texts
from tierwise.report.recording.prediction import speedup, warning_texts
from tierwise.report.recording.prediction_words import caution_blocks, moving, warning_sentence

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


LOAD_NAMES: dict[Load, str] = {
    "peak": "peak rate",
    "mean": "mean rate",
    "worst-p99": "worst p99 hour",
}


def timeline_blocks(day: Timeline) -> list[Block]:
    """Charts of rate, p99 and shares of time, and a table with one row for each recording.

    Formats without charts have the table alone.
    """
    return [*_charts(day), _moments(day)] if any(one.rate_per_s for one in day.moments) else [_moments(day)]


def day_document(day: Timeline) -> list[Block]:
    """The extent of the day, what its loads are, the timeline, and warnings."""
    return [Text(day_sentence(day), Tone.HEADLINE), *loads(day), *timeline_blocks(day), *day_warnings(day)]


def day_page(day: Timeline) -> Page:
    """The same as a page for one file."""
    return Page(
        title=f"day {day.folder}",
        header=[Text(day_sentence(day), Tone.HEADLINE), *loads(day), *day_warnings(day)],
        body=[Section("", timeline_blocks(day), id="timeline")],
        footer="Each point is one recording. Rates are free of the cost of recording; a device is busy while "
        "at least one request of the role is under way.",
    )


def day_sentence(day: Timeline) -> str:
    """``12 recordings: 120–340 transactions a second, 210 in the mean.``"""
    many = len(day.moments)
    extent = f"{many} recording{'s' if many != 1 else ''}"
    rates = [one.rate_per_s for one in day.moments if one.rate_per_s]
    if not rates:
        return f"{extent}: no work was seen."
    ends = numbers.span(numbers.significant(min(rates)), numbers.significant(max(rates)))
    return f"{extent}: {ends} {day.unit} a second, {numbers.significant(day.mean_rate_per_s)} in the mean."


def loads(day: Timeline) -> list[Text]:
    """The extent of the day, then one line for each load: its recording and figures."""
    first, last = day.moments[0].started_at, day.moments[-1].started_at
    extent = Text(f"{day.folder}: recorded from {first} to {last}.")
    return [
        extent,
        *(Text(_load_sentence(load, day.moment(name), day.unit)) for load, name in day.chosen.items()),
    ]


def day_warnings(day: Timeline) -> list[Text]:
    """Warnings of the day, and the number of recordings that have some of their own."""
    own = [one.recording for one in day.moments if one.warnings]
    of_recordings = (
        [f"{len(own)} of {len(day.moments)} recordings have warnings: tierwise recording show {own[0]}"]
        if own
        else []
    )
    return warning_texts([*day.warnings, *of_recordings])


def _load_sentence(load: Load, moment: Moment, unit: str) -> str:
    p99 = f", p99 {numbers.microseconds(moment.p99_us)}" if moment.p99_us is not None else ""
    return (
        f"{LOAD_NAMES[load].capitalize()}: {moment.recording}, "
        f"{numbers.significant(moment.rate_per_s or 0.0)} {unit} a second{p99}."
    )


def _moments(day: Timeline) -> Table:
    marks = {
        name: [LOAD_NAMES[load] for load, of in day.chosen.items() if of == name]
        for name in day.chosen.values()
    }
    busy = [f"{role}\nbusy" for role in day.roles]
    figures = ["clients", f"{day.unit}/s", "p50", "p99", "waits for\nthe log", *busy]
    found = table([], figures, "Timeline", names=["recording"])
    shown = Table([*found.columns, Column("stands for", ColumnKind.NAME)], title=found.title)
    for one in day.moments:
        shown.add(one.recording, *_figures(one, day), one.without or ", ".join(marks.get(one.recording, [])))
    return shown


def _figures(one: Moment, day: Timeline) -> Sequence[Cell]:
    if one.without:
        return [Cell(numbers.NONE)] * (5 + len(day.roles))
    return [
        figure(one.clients, numbers.count),
        figure(one.rate_per_s, numbers.significant),
        figure(one.p50_us, numbers.microseconds),
        figure(one.p99_us, numbers.microseconds),
        figure(one.log_wait_share, numbers.percent),
        *(figure(one.busy.get(role, 0.0), numbers.percent) for role in day.roles),
    ]


def _charts(day: Timeline) -> list[Chart]:
    # Charts take half a second to import, and the terminal shows none.
    from tierwise.report.charts.profile import (
        described_p99,
        described_rate,
        described_shares,
        p99_chart,
        rate_chart,
        shares_chart,
    )

    drawn = (
        ("rate", described_rate, rate_chart, ""),
        ("p99", described_p99, p99_chart, ""),
        (
            "shares",
            described_shares,
            shares_chart,
            "Dashed: share of the sessions' time that goes to the log. Others: share of the time in which "
            "the role's device is busy.",
        ),
    )
    return [
        Chart(name, describe(day), lambda look, draw=draw: draw(day, look), caption)  # type: ignore[misc]
        for name, describe, draw, caption in drawn
    ]
