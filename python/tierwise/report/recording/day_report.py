"""A day of recordings: its timeline as a document and as charts, and the advice for its loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tierwise.advise import AdviceForLoad, DayAdvice
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.names import join_words
from tierwise.predict.timeline import DayTimeline, Load, TimelineMoment
from tierwise.report import document as doc
from tierwise.report.charts.chart_style import (
    ChartLook,
    ChartMark,
    chart_of_marks,
    colour_legend,
    finish_chart,
    plot_marks,
    quantitative_axis,
)
from tierwise.report.charts.chart_style import placement_colours as scale_of
from tierwise.report.palette import ROLE_COLOURS
from tierwise.report.recording.decision_words import decision_headline, doubt_texts, moved_words
from tierwise.report.recording.prediction_report import (
    caution_blocks,
    move_words,
    speedup_cell,
    warning_sentence,
    warning_texts,
)

_NOTHING = "nothing"


def day_advice_document(day_advice: DayAdvice) -> list[doc.Block]:
    """Whether the loads agree, the advice for each, the timeline, and warnings."""
    given = [answer.advice for answer in day_advice.answers if answer.advice]
    cautions = dict.fromkeys(caution.text for advice in given for caution in advice.warnings)
    return [
        *_unusable(day_advice),
        doc.Text(loads_agreement_sentence(day_advice), doc.Tone.HEADLINE),
        *(
            doc.Text(
                f"{LOAD_NAMES[answer.load].capitalize()} ({answer.recording}): "
                + (decision_headline(answer.advice) if answer.advice else f"no advice: {answer.refused}.")
            )
            for answer in day_advice.answers
        ),
        _answers(day_advice),
        *(
            []
            if day_advice.same_best
            else [doc.Text("The best placements differ: compare them at each load above.")]
        ),
        doc.Text(day_sentence(day_advice.day)),
        doc.Text(
            f"Everything about one of them: tierwise advise {day_advice.day.folder}/RECORDING.",
            doc.Tone.QUIET,
        ),
        *timeline_blocks(day_advice.day),
        *day_warnings(day_advice.day),
        *caution_blocks(map(warning_sentence, cautions)),
    ]


def day_advice_section(day_advice: DayAdvice) -> list[doc.Block]:
    """What the advice page of its peak shows of a day: whether its loads agree, and its timeline."""
    return [
        doc.Text(loads_agreement_sentence(day_advice)),
        _answers(day_advice),
        *timeline_blocks(day_advice.day),
        *day_warnings(day_advice.day),
    ]


def _unusable(day_advice: DayAdvice) -> list[doc.Block]:
    """The recordings of the day that are not usable, why and what to do."""
    asked = {
        answer.recording: answer.advice
        for answer in day_advice.answers
        if answer.advice and not answer.advice.usable
    }
    unusable: list[doc.Block] = []
    for name, advice in asked.items():
        first, *others = doubt_texts(advice.usable, advice.remarks)
        unusable += [
            doc.Text(f"{name}: {first.text}", first.tone) if isinstance(first, doc.Text) else first,
            *others,
        ]
    return unusable


def loads_agreement_sentence(day_advice: DayAdvice) -> str:
    """Whether the peak, the mean and the worst hour ask for the same first move."""
    given = [answer for answer in day_advice.answers if answer.advice]
    names = join_words([LOAD_NAMES[answer.load] for answer in given])
    if len({answer.recording for answer in given}) == 1:
        alone = f"One recording stands for {names}: "
        return f"{alone}{_step(given[0], 'first move')}."
    if day_advice.same_first_move:
        return f"The advice is the same at {names}: {_step(given[0], 'first move')}."
    each = "; ".join(f"at {LOAD_NAMES[answer.load]}, {_step(answer, 'move')}" for answer in given)
    return f"The advice depends on the load: {each}."


def _step(answer: AdviceForLoad, verb: str) -> str:
    setting, _ = answer.first_step
    return f"set {setting}" if setting else f"{verb} {_first(answer)}"


def _first(answer: AdviceForLoad) -> str:
    _, moved = answer.first_step
    return move_words(moved) or _NOTHING


def _answers(day_advice: DayAdvice) -> doc.Table:
    words = ["first move", "best placement"]
    currency = next((answer.advice.currency for answer in day_advice.answers if answer.advice), "")
    price = numbers.per_month_unit(currency)
    shown = doc.empty_table(
        words, ["times\nfaster", f"{day_advice.day.unit}/s", "p99", price], "Best placements", ["load"]
    )
    for answer in day_advice.answers:
        best = answer.advice.decision.option if answer.advice else None
        if best is None:
            shown.add(LOAD_NAMES[answer.load], _first(answer), numbers.NONE, *[doc.Cell(numbers.NONE)] * 4)
            continue
        shown.add(
            LOAD_NAMES[answer.load],
            _first(answer),
            moved_words(best) or _NOTHING,
            speedup_cell(best.prediction),
            doc.estimate_cell(best.prediction.rate_per_s, numbers.significant_text),
            doc.estimate_cell(best.prediction.p99_us, numbers.latency_text),
            doc.figure_cell(best.cost_per_month, numbers.significant_text),
        )
    return shown


LOAD_NAMES: dict[Load, str] = {"peak": "peak rate", "mean": "mean rate", "worst-p99": "worst p99 hour"}


def timeline_blocks(day: DayTimeline) -> list[doc.Block]:
    """Charts of rate, p99 and shares of time, and a table with one row for each recording.

    Formats without charts have the table alone.
    """
    charts = _charts(day) if any(moment.rate_per_s for moment in day.moments) else []
    return [*charts, _moments(day)]


def day_document(day: DayTimeline) -> list[doc.Block]:
    """The extent of the day, what its loads are, the timeline, and warnings."""
    return [
        doc.Text(day_sentence(day), doc.Tone.HEADLINE),
        *day_load_texts(day),
        *timeline_blocks(day),
        *day_warnings(day),
    ]


def day_page(day: DayTimeline) -> doc.Page:
    """The same as a page for one file."""
    return doc.Page(
        title=f"day {day.folder}",
        header=[doc.Text(day_sentence(day), doc.Tone.HEADLINE), *day_load_texts(day), *day_warnings(day)],
        body=[doc.Section("", timeline_blocks(day), id="timeline")],
        footer="Each point is one recording. Rates are free of the cost of recording; a device is busy while "
        "at least one request of the role is under way.",
    )


def day_sentence(day: DayTimeline) -> str:
    """``12 recordings: 120–340 transactions a second, 210 in the mean.``"""
    extent = numbers.counted_noun(len(day.moments), "recording")
    rates = [moment.rate_per_s for moment in day.moments if moment.rate_per_s]
    if not rates:
        return f"{extent}: no work was seen."
    if without := len(day.moments) - len(rates):
        extent += f", {numbers.count_text(without)} of them without a rate"
    ends = numbers.range_text(numbers.significant_text(min(rates)), numbers.significant_text(max(rates)))
    return (
        f"{extent}: {ends} {day.unit} a second, {numbers.significant_text(day.mean_rate_per_s)} in the mean."
    )


def day_load_texts(day: DayTimeline) -> list[doc.Text]:
    """The extent of the day, then one line for each load: its recording and figures."""
    first, last = day.moments[0].started_at, day.moments[-1].started_at
    extent = doc.Text(f"{day.folder}: recorded from {first} to {last}.")
    return [
        extent,
        *(doc.Text(_load_sentence(load, day.moment(name), day.unit)) for load, name in day.chosen.items()),
    ]


def day_warnings(day: DayTimeline) -> list[doc.Text]:
    """Warnings of the day, and the number of recordings that have some of their own."""
    own = [moment.recording for moment in day.moments if moment.warnings]
    of_recordings = (
        [
            f"{len(own)} of {numbers.counted_noun(len(day.moments), 'recording')} "
            f"{'has' if len(own) == 1 else 'have'} warnings: tierwise recording show {own[0]}"
        ]
        if own
        else []
    )
    return warning_texts([*day.warnings, *of_recordings])


def _load_sentence(load: Load, moment: TimelineMoment, unit: str) -> str:
    p99 = f", p99 {numbers.latency_text(moment.p99_us)}" if moment.p99_us is not None else ""
    return (
        f"{LOAD_NAMES[load].capitalize()}: {moment.recording}, "
        f"{numbers.significant_text(moment.rate_per_s or 0.0)} {unit} a second{p99}."
    )


def _moments(day: DayTimeline) -> doc.Table:
    marks = {
        name: [LOAD_NAMES[load] for load, of in day.chosen.items() if of == name]
        for name in day.chosen.values()
    }
    busy = [f"{role}\nbusy" for role in day.roles]
    figures = ["clients", f"{day.unit}/s", "p50", "p99", "waits for\nthe log", *busy]
    empty = doc.empty_table([], figures, "Timeline", names=["recording"])
    shown = replace(empty, columns=[*empty.columns, doc.Column("stands for", doc.ColumnKind.NAME)])
    for moment in day.moments:
        shown.add(
            moment.recording,
            *_figures(moment, day),
            moment.without or ", ".join(marks.get(moment.recording, [])),
        )
    return shown


def _figures(moment: TimelineMoment, day: DayTimeline) -> Sequence[doc.Cell]:
    if moment.without:
        return [doc.Cell(numbers.NONE)] * (5 + len(day.roles))
    return [
        doc.figure_cell(moment.clients, numbers.count_text),
        doc.figure_cell(moment.rate_per_s, numbers.significant_text),
        doc.figure_cell(moment.p50_us, numbers.latency_text),
        doc.figure_cell(moment.p99_us, numbers.latency_text),
        doc.figure_cell(moment.log_wait_share, numbers.percent_text),
        *(doc.figure_cell(moment.busy.get(role, 0.0), numbers.percent_text) for role in day.roles),
    ]


LOG_WAITS = "waits for the log"
_HEIGHT_PX = 190
_SHORT = timedelta(minutes=10)
_DASH = [5, 3]
_PERCENT = 100.0
_CAPTIONS = {
    "shares": "Dashed: share of the sessions' time that goes to the log. Others: share of the time in which "
    "the role's device is busy."
}


def _charts(day: DayTimeline) -> list[doc.Chart]:
    """Rate, p99 latency and shares of time of each recording; none of what no recording tells."""
    rates = [
        ChartMark(moment.started_at, "", numbers.significant_text(moment.rate_per_s), moment.rate_per_s)
        for moment in day.moments
        if moment.rate_per_s is not None
    ]
    latencies = [
        ChartMark(moment.started_at, "", numbers.latency_text(moment.p99_us), moment.p99_us / 1e3)
        for moment in day.moments
        if moment.p99_us is not None
    ]
    shares = [
        (moment, LOG_WAITS, moment.log_wait_share)
        for moment in day.moments
        if moment.log_wait_share is not None
    ]
    shares += [
        (moment, role.value, moment.busy.get(role, 0.0))
        for role in day.roles
        for moment in day.moments
        if not moment.without
    ]
    marks = [
        ChartMark(moment.started_at, what, numbers.percent_text(share), _PERCENT * share)
        for moment, what, share in shares
    ]
    colours = {LOG_WAITS: "ink"} | {role.value: ROLE_COLOURS[role.value] for role in day.roles}
    figures = (
        _lines("rate", f"{day.unit.capitalize()} a second", rates, {"": "place-1"}),
        _lines("p99", "p99 latency (ms)", latencies, {"": "place-1"}),
        _lines("shares", "Share of time (%)", marks, colours),
    )
    return [replace(figure, caption=_CAPTIONS.get(figure.name, "")) for figure in figures if figure]


def _lines(name: str, title: str, marks: Sequence[ChartMark], colours: Mapping[str, str]) -> doc.Chart | None:
    """Lines over the time of day, one for each group."""

    def draw(look: ChartLook) -> alt.LayerChart:
        shown = colour_legend(look, 2 if look.narrow else 5) if len(colours) > 1 else None
        base = plot_marks(marks).encode(
            x=alt.X("row:T", scale=alt.Scale(type="utc"), axis=_time_axis(marks)),
            y=alt.Y(
                "value:Q", scale=alt.Scale(domainMin=0, nice=True), axis=quantitative_axis(title, tickCount=5)
            ),
            color=alt.Color("group:N", scale=scale_of(colours, look), legend=shown),
        )
        dash = alt.condition(f"datum.group === '{LOG_WAITS}'", alt.value(_DASH), alt.value([1, 0]))
        layers = [
            base.mark_line(strokeWidth=1.5, opacity=0.7).encode(strokeDash=dash),
            base.mark_point(filled=True, size=36, opacity=1),
        ]
        return finish_chart(layers, look, _HEIGHT_PX + (40 if shown else 0), title, right_px=14)

    return chart_of_marks(name, title, marks, draw)


def _time_axis(marks: Sequence[ChartMark]) -> alt.Axis:
    """Hours and minutes; with seconds if the whole day takes only minutes."""
    times = [datetime.fromisoformat(mark.row) for mark in marks]
    is_short = max(times) - min(times) < _SHORT
    shape = "%H:%M:%S" if is_short else "%H:%M"
    return quantitative_axis("Time (UTC)", tickCount=6, grid=False, format=shape, labelExpr="datum.label")
