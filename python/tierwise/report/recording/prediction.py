"""Predictions, rankings, and predictions of databases that share devices, as documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tierwise.advise.alternatives import MachineMove, MemoryMove, SettingMove
from tierwise.model.names import capitalized
from tierwise.model.units import SYMBOLS
from tierwise.predict import RECORDED, JointPrediction, Prediction, RecordedRun
from tierwise.predict.ranking import Ranking
from tierwise.report import numbers
from tierwise.report.document import (
    Block,
    Cell,
    Column,
    ColumnKind,
    Table,
    Text,
    Tone,
    estimate,
    figure,
    table,
)
from tierwise.report.recording.money_words import cents
from tierwise.report.recording.prediction_words import (
    TIME_NAMES,
    bound_sentence,
    caution_blocks,
    headline,
    ranking_sentence,
    recorded_sentence,
    scenario_parts,
    time_sentence,
    warning_sentence,
)


def joint_document(answers: Sequence[JointPrediction]) -> list[Block]:
    """What sharing costs, a row for each database, and warnings."""
    worst = min(answers, key=lambda answer: answer.kept.value)
    return [
        Text(_sentence(answers, worst), Tone.HEADLINE),
        _table(answers),
        *warnings_of([answer.together for answer in answers]),
    ]


def _sentence(answers: Sequence[JointPrediction], worst: JointPrediction) -> str:
    lost = 1 - worst.kept.value
    if lost < 0.005:
        return f"Sharing costs none of the {len(answers)} databases anything that the simulation shows."
    between = f"{numbers.percent(1 - worst.kept.high)} to {numbers.percent(1 - worst.kept.low)}"
    return (
        f"Sharing costs {worst.database} {numbers.percent(lost)} of its rate ({between} over the seeds), "
        f"the most of the {len(answers)} databases."
    )


def _table(answers: Sequence[JointPrediction]) -> Table:
    rows = table(
        ["database", "scenario"],
        [
            f"{answers[0].alone.unit}/s\nalone",
            "together",
            "times faster\nthan recorded",
            "p99\nalone",
            "p99\ntogether",
        ],
    )
    for answer in answers:
        rows.add(
            answer.database,
            "\n".join(scenario_parts(answer.together.scenario)),
            estimate(answer.alone.rate_per_s, numbers.significant),
            estimate(answer.together.rate_per_s, numbers.significant),
            speedup(answer.together),
            estimate(answer.alone.p99_us, numbers.microseconds),
            estimate(answer.together.p99_us, numbers.microseconds),
        )
    return rows


_MOST_TIMES = 3
_LEAST_SHARE = 0.05
_MOST_RANKED = 10


def prediction_document(run: RecordedRun, base: Prediction, answers: Sequence[Prediction]) -> list[Block]:
    """The main sentence, then the recorded run and one row for each answer, and warnings."""
    answered = [answer for answer in answers if not answer.refused and answer.scenario.changes]
    blocks: list[Block] = [Text(sentence, Tone.HEADLINE) for sentence in headline(answers)]
    if answered:
        blocks.append(Text(f"As recorded, {time_sentence(base)}."))
    blocks += [Text(f"Recorded: {recorded_sentence(run)}"), answer_table([base, *answered])]
    return [*blocks, *_loads(answers), *notes(answered), *warnings_of([base, *answers])]


def ranking_document(run: RecordedRun, base: Prediction, ranking: Ranking) -> list[Block]:
    """The best placements with a column for each role, the main sentence, and the omissions."""
    return [
        Text(ranking_sentence(ranking), Tone.HEADLINE),
        Text(f"Recorded: {recorded_sentence(run)}"),
        ranking_table(base, ranking),
        *(Text(f"Note: {note}.", Tone.WARNING) for note in ranking.notes),
        *notes(ranking.closer[:1]),
        *warnings_of(ranking.closer),
    ]


def answer_table(answers: Sequence[Prediction]) -> Table:
    """One row for each answer; the others are compared with the first."""
    timed = answers[0].once
    latencies = () if timed else ("p50\nlatency", "p99\nlatency")
    chief = "time" if timed else f"{answers[0].unit}/s"
    figures = (Column(name) for name in (chief, "times\nfaster", *latencies))
    words = (Column(name, ColumnKind.WORDS) for name in ("scenario", "time goes to"))
    table = Table([next(words), *figures, next(words)])
    for answer in answers:
        shown = [] if timed else [answer.p50_us, answer.p99_us]
        table.add(
            "\n".join(scenario_parts(answer.scenario)),
            chief_figure(answer, timed),
            speedup(answer),
            *(estimate(latency, numbers.microseconds) for latency in shown),
            _times(answer),
        )
    return table


def ranking_table(base: Prediction, ranking: Ranking) -> Table:
    """The best placements; those not distinguishable from the best are marked."""
    chief = "time" if base.once else f"{base.unit}/s"
    rankings = table(["rank", *ranking.roles], [chief, "times\nfaster", "p99\nlatency"])
    for number, answer in enumerate(ranking.closer[:_MOST_RANKED], start=1):
        mark = "=" if number > 1 and ranking.alike(answer) else ""
        rankings.add(
            f"{number}{mark}",
            *(answer.scenario.placement.get(role, RECORDED) for role in ranking.roles),
            chief_figure(answer, base.once),
            speedup(answer),
            estimate(answer.p99_us, numbers.microseconds),
        )
    return rankings


def notes(answers: Sequence[Prediction]) -> list[Text]:
    """The bound and the notes of each answer; if there are several, each line names its answer."""
    texts: dict[str, None] = {}
    for answer in answers:
        own = [*([bound_sentence(answer)] if answer.bound else []), *answer.notes]
        name = f"{', '.join(scenario_parts(answer.scenario))}: " if len(answers) > 1 else ""
        keeps = answer.scenario.selected or answer.scenario.settings  # a name keeps its letters
        begin = str if keeps and name else capitalized
        texts |= dict.fromkeys(begin(f"{name}{sentence.rstrip('.')}.") for sentence in own)
    return [Text(sentence) for sentence in texts]


def warnings_of(answers: Sequence[Prediction]) -> list[Block]:
    """The warnings of all answers, each once with its scenario, the first few in sight.

    What another model says is folded.
    """
    return caution_blocks(
        _named([(answer, answer.warnings) for answer in answers]),
        _named([(answer, answer.cross_checks) for answer in answers]),
    )


def _named(texts_of: Sequence[tuple[Prediction, Sequence[str]]]) -> list[str]:
    """Each warning; one that not all answers have names the first that has it."""
    by_text: dict[str, list[Prediction]] = {}
    for answer, sentences in texts_of:
        for text in dict.fromkeys(sentences):
            by_text.setdefault(text, []).append(answer)
    changed = sum(bool(answer.scenario.changes) for answer, _ in texts_of)
    return [
        warning_sentence(text, "" if len(of) >= changed else ", ".join(scenario_parts(of[0].scenario)))
        for text, of in by_text.items()
    ]


def warning_texts(warnings: Iterable[str]) -> list[Text]:
    """Warnings, one line each."""
    return [Text(warning_sentence(warning), Tone.WARNING) for warning in warnings]


def speedup(answer: Prediction) -> Cell:
    """The ratio to the recorded run, marked where the interval excludes no change."""
    if answer.speedup is None or not answer.scenario.changes:
        return Cell(numbers.NONE)
    tone = Tone.BETTER if answer.faster else Tone.WORSE if answer.slower else Tone.PLAIN
    return replace(estimate(answer.speedup, numbers.ratio), tone=tone)


def chief_figure(answer: Prediction, timed: bool) -> Cell:
    """The time of work done once, or else the rate."""
    return (
        estimate(answer.elapsed_s, numbers.seconds)
        if timed
        else estimate(answer.rate_per_s, numbers.significant)
    )


def gain_headings(unit: str, currency: str, timed: bool) -> list[str]:
    """Headings of :func:`gain_cells`; ``unit`` is what rates count."""
    money = f"{SYMBOLS.get(currency, currency)}/month"
    return ["time" if timed else f"{unit}/s", "times\nfaster", "more/s", money]


def gain_cells(move: SettingMove | MemoryMove | MachineMove, timed: bool) -> list[Cell | str]:
    """Rate, gain and price of what takes the place of a move of files."""
    return [
        chief_figure(move.prediction, timed),
        speedup(move.prediction),
        figure(move.gain_per_s, numbers.significant),
        figure(move.cost_per_month, cents),
    ]


_NO_FLUSHES = (
    "No flushes: the kernel sends none to a device that keeps acknowledged writes through a power cut."
)


def _loads(answers: Sequence[Prediction]) -> list[Table | Text]:
    """The I/O load of each role on its device, for a single answer."""
    if len(answers) != 1 or not answers[0].io:
        return []
    loads_table = table([], ["files", "reads/s", "writes/s", "flushes/s", "busy"], names=["role", "on"])
    for role, load in answers[0].io.items():
        loads_table.add(
            role,
            load.device,
            figure(load.size_bytes, numbers.size),
            _with_bytes(load.reads_per_s, load.read_bytes_per_s),
            _with_bytes(load.writes_per_s, load.written_bytes_per_s),
            figure(load.flushes_per_s, numbers.significant),
            figure(load.busy_share, numbers.percent),
        )
    loads = answers[0].io.values()
    write_through = any(
        load.writes_per_s and not load.flushes_per_s and load.device != RECORDED for load in loads
    )
    return [loads_table, *([Text(_NO_FLUSHES, Tone.QUIET)] if write_through else [])]


def _with_bytes(rate_per_s: float, bytes_per_s: float) -> Cell:
    below = Text(f"{numbers.size(bytes_per_s)}/s", Tone.QUIET)
    return replace(figure(rate_per_s, numbers.significant), below=(below,))


def _times(answer: Prediction) -> str:
    ordered = sorted(answer.shares.items(), key=lambda item: item[1], reverse=True)[:_MOST_TIMES]
    chief = [(name, share) for name, share in ordered if share >= _LEAST_SHARE]
    return "\n".join(f"{numbers.percent(share)} {TIME_NAMES.get(name, name)}" for name, share in chief)
