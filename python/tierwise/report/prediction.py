"""Predictions for a terminal, as renderables of rich."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.table import Table
from rich.text import Text

from tierwise.predict import RECORDED, Estimate, Prediction, RecordedRun
from tierwise.predict.ranking import Ranking
from tierwise.report import numbers
from tierwise.report.prediction_words import (
    TIME_NAMES,
    bound_sentence,
    headline,
    question_parts,
    ranking_sentence,
    recorded_sentence,
    time_sentence,
)

_MOST_TIMES = 3
_LEAST_SHARE = 0.05
_MOST_RANKED = 10


def prediction_parts(run: RecordedRun, base: Prediction, answers: Sequence[Prediction]) -> list[Table | Text]:
    """The sentence first, then the recorded run and one row for each answer, and what is known against it."""
    answered = [answer for answer in answers if not answer.refused and answer.question.changes]
    parts: list[Table | Text] = [Text(sentence, style="bold") for sentence in headline(answers)]
    if answered:
        parts.append(Text(f"As recorded, {time_sentence(base)}."))
    parts += [Text(), Text(f"Recorded: {recorded_sentence(run)}"), Text()]
    parts += [answer_table([base, *answered]), Text()]
    return [*parts, *_loads(answers), *note_parts(answered), *warning_parts([base, *answers])]


def ranking_parts(run: RecordedRun, base: Prediction, ranking: Ranking) -> list[Table | Text]:
    """The best placements with a column for each role, the sentence, and what was left out."""
    return [
        Text(ranking_sentence(ranking), style="bold"),
        Text(),
        Text(f"Recorded: {recorded_sentence(run)}"),
        Text(),
        ranking_table(base, ranking),
        Text(),
        *(Text(f"Note: {note}.", style="yellow") for note in ranking.notes),
        *note_parts(ranking.closer[:1]),
        *warning_parts(ranking.closer),
    ]


def answer_table(answers: Sequence[Prediction]) -> Table:
    """One row for each answer; the first is what the others are against."""
    table = plain_table()
    table.add_column("", overflow="fold")
    timed = answers[0].once
    latencies = () if timed else ("p50\nlatency", "p99\nlatency")
    for name in ("time" if timed else f"{answers[0].unit}/s", "times\nfaster", *latencies):
        table.add_column(name, justify="right", no_wrap=True, vertical="top")
    table.add_column("time goes to", overflow="fold")
    for answer in answers:
        chief = answer.elapsed_s if timed else answer.rate_per_s
        shown = [] if timed else [answer.p50_us, answer.p99_us]
        table.add_row(
            Text("\n".join(question_parts(answer.question))),
            with_interval(chief, numbers.seconds if timed else numbers.significant),
            speedup(answer),
            *(with_interval(latency, numbers.microseconds) for latency in shown),
            Text(_times(answer)),
        )
    return table


def ranking_table(base: Prediction, ranking: Ranking) -> Table:
    """The best placements; those that cannot be told from the best are marked."""
    table = plain_table()
    table.add_column("", justify="right")
    for role in ranking.roles:
        table.add_column(role, overflow="fold")
    for name in ("time" if base.once else f"{base.unit}/s", "times\nfaster", "p99\nlatency"):
        table.add_column(name, justify="right", no_wrap=True, vertical="top")
    for number, answer in enumerate(ranking.closer[:_MOST_RANKED], start=1):
        mark = "=" if number > 1 and ranking.alike(answer) else ""
        chief = answer.elapsed_s if base.once else answer.rate_per_s
        table.add_row(
            f"{number}{mark}",
            *(Text(answer.question.placement.get(role, RECORDED)) for role in ranking.roles),
            with_interval(chief, numbers.seconds if base.once else numbers.significant),
            speedup(answer),
            with_interval(answer.p99_us, numbers.microseconds),
        )
    return table


def note_parts(answers: Sequence[Prediction]) -> list[Text]:
    """The most that each answer can be, and the state that it holds for; of several answers, which one."""
    said: dict[str, None] = {}
    for answer in answers:
        own = [*([bound_sentence(answer)] if answer.bound else []), *answer.notes]
        name = f"{', '.join(question_parts(answer.question))}: " if len(answers) > 1 else ""
        said |= dict.fromkeys(f"{name}{sentence}" for sentence in own)
    return [Text(f"{sentence[0].upper()}{sentence[1:].rstrip('.')}.") for sentence in said]


def warning_parts(answers: Sequence[Prediction]) -> list[Text]:
    """Everything that is known against any of the answers, once."""
    return warnings_text(dict.fromkeys(warning for answer in answers for warning in answer.warnings))


def warnings_text(warnings: Iterable[str]) -> list[Text]:
    """Warnings, a line each."""
    return [Text(f"Warning: {warning.rstrip('.')}.", style="yellow") for warning in warnings]


def with_interval(figure: Estimate | None, text: Callable[[float], str]) -> Text:
    """A figure with its interval below it."""
    if figure is None:
        return Text(numbers.NONE)
    ends = numbers.span(text(figure.low), text(figure.high))
    return Text.assemble(text(figure.value), (f"\n{ends}", "dim"))


def speedup(answer: Prediction) -> Text:
    """The ratio to the recorded run, green or red where the interval excludes no change."""
    if answer.speedup is None or not answer.question.changes:
        return Text(numbers.NONE)
    text = with_interval(answer.speedup, numbers.ratio)
    text.stylize("green" if answer.faster else "red" if answer.slower else "")
    return text


def plain_table() -> Table:
    """A table without lines."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


def _loads(answers: Sequence[Prediction]) -> list[Table | Text]:
    """What each role asks of its device, for a single answer."""
    if len(answers) != 1 or not answers[0].io:
        return []
    table = plain_table()
    for name in ("role", "on"):
        table.add_column(name, overflow="fold")
    for name in ("files", "reads/s", "writes/s", "flushes/s", "read/s", "written/s", "busy"):
        table.add_column(name, justify="right", no_wrap=True)
    for role, load in answers[0].io.items():
        table.add_row(
            role,
            load.device,
            numbers.size(load.size_bytes),
            *(numbers.significant(one) for one in (load.reads_per_s, load.writes_per_s, load.flushes_per_s)),
            numbers.size(load.read_bytes_per_s),
            numbers.size(load.written_bytes_per_s),
            numbers.percent(load.busy_share),
        )
    return [table, Text()]


def _times(answer: Prediction) -> str:
    ordered = sorted(answer.shares.items(), key=lambda item: item[1], reverse=True)[:_MOST_TIMES]
    chief = [(name, share) for name, share in ordered if share >= _LEAST_SHARE]
    return "\n".join(f"{numbers.percent(share)} {TIME_NAMES.get(name, name)}" for name, share in chief)
