"""Predictions in words, as documents and as a chart: single ones, rankings, databases that share devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tierwise.advise import Advice, Caution
from tierwise.advise.alternatives import MachineChange, MemoryIncrease, SettingChange
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.names import capitalized, group_by_key, join_words
from tierwise.model.placement import EVERYTHING, ROLE_NAMES, Role, is_relation_name
from tierwise.model.statistics import Interval
from tierwise.predict import (
    RECORDED,
    Estimate,
    JointPrediction,
    Prediction,
    RecordedRun,
    Scenario,
    resolve_device,
)
from tierwise.predict.named_devices import roles_lost_at_stop, roles_on_instance_store
from tierwise.predict.ranking import Ranking
from tierwise.predict.simulator_output import CHANCE
from tierwise.predict.usability import Usability
from tierwise.report import document as doc
from tierwise.report.charts.chart_builders import dot_chart, dot_of_interval
from tierwise.report.charts.chart_style import WIDE, zero_x_axis

MOST_IN_SIGHT = 3
"""Warnings that are shown at once."""
_MOST_PLACES = 2


def advice_cautions(advice: Advice) -> list[doc.Block]:
    """The warnings of an advice, and what another model says, which is always folded."""
    return caution_blocks(map(_placed, advice.warnings), map(_placed, advice.cross_checks))


def caution_blocks(warnings: Iterable[str], folded: Iterable[str] = ()) -> list[doc.Block]:
    """The first warnings in sight, the others folded, and so are those that are never in sight."""
    first = list(warnings)
    shown, rest = first[:MOST_IN_SIGHT], [*first[MOST_IN_SIGHT:], *folded]
    blocks: list[doc.Block] = doc.paragraphs(shown, doc.Tone.WARNING)
    if rest:
        title = numbers.counted_noun(len(rest), "more warning")
        blocks.append(doc.Section(title, doc.paragraphs(rest, doc.Tone.WARNING), folded=True))
    return blocks


def warning_sentence(text: str, where: str = "") -> str:
    """``Warning, the log to ssd-nvme-dc: …``, with what it is about."""
    return f"Warning{f', {where}' if where else ''}: {text.rstrip('.')}."


def _placed(caution: Caution) -> str:
    return warning_sentence(caution.text, _places(caution.placements))


def _places(placements: Sequence[Mapping[Role, str]]) -> str:
    """``with the log to ram, or …``; empty for a warning of all placements."""
    named = [move_words(placement) for placement in placements[:_MOST_PLACES]]
    more = len(placements) - len(named)
    return " or ".join([*named, *([numbers.counted_noun(more, "more placement")] if more else [])])


TIME_NAMES = {
    "cpu": "on CPU",
    "runnable": "waiting for a core",
    "log_device": "writing the log",
    "log_queue": "behind others' log flushes",
    "read": "reading files",
    "write": "writing files",
    "lock": "waiting for locks or other threads",
    "client": "at the client",
    "sleep": "asleep or without work",
    "other": "elsewhere",
}


def ratio_interval_words(figure: Estimate) -> str:
    """``2.8–3.4``: the interval of a ratio."""
    return numbers.range_text(numbers.ratio_text(figure.low), numbers.ratio_text(figure.high))


def times_words(speedup: Estimate) -> str:
    """``3.1 (2.8–3.4) times``."""
    return f"{numbers.ratio_text(speedup.value)} ({ratio_interval_words(speedup)}) times"


def sped_up_quantity(answer: Prediction) -> str:
    """The quantity that a speed-up multiplies."""
    what = "as fast" if answer.once else "the throughput"
    return f"{what}, from waits only" if answer.from_waits else what


def gain_words(answer: Prediction, interval: bool = True) -> str:
    """``17.8 (12.6–25.4) times the throughput``."""
    speedup, what = answer.speedup, sped_up_quantity(answer)
    if speedup is None:
        return "no figure"
    if answer.bounds_only:
        return (
            f"between {numbers.ratio_text(speedup.low)} and {numbers.ratio_text(speedup.high)} times {what}"
        )
    return f"{times_words(speedup) if interval else f'{numbers.ratio_text(speedup.value)} times'} {what}"


def recorded_sentence(run: RecordedRun) -> str:
    """The recorded run, and its reproduction error."""
    engine = f"{run.engine} {run.engine_version}" if run.engine_version else run.engine
    clients = numbers.counted_noun(run.clients, "client")
    if run.pooler is not None:
        clients = f"{numbers.counted_noun(run.clients, 'session')} of {run.pooler}"
    took = numbers.seconds_text(run.duration_s)
    if run.once:
        recorded, replayed = f"done in {took}", numbers.seconds_text(run.duration_s / (1 + run.error))
    else:
        recorded = f"{took}: {numbers.significant_text(run.rate_per_s)} {run.unit} a second"
        replayed = numbers.significant_text(run.reproduced_rate_per_s)
    if run.from_waits:
        return f"{engine}, observed over SQL, {clients}, {recorded}; the coarse model gives {replayed}."
    rate = "rate " if run.once else ""
    return (
        f"{engine}, {clients}, {numbers.counted_noun(run.cores, 'core')}, {recorded}; "
        f"replayed {replayed} ({rate}{numbers.signed_percent_text(run.error)})."
    )


def scenario_parts(scenario: Scenario) -> list[str]:
    """Changes of a scenario, one line each."""
    parts = [f"{', '.join(roles)} on {device}" for device, roles in _by_device(scenario.placement).items()]
    parts += scenario.settings
    if scenario.instance is not None:
        parts.append(f"machine {scenario.instance.name}")
    if scenario.growth is not None:
        own = scenario.clients is None and (scenario.rate_per_s is None or _follows(scenario, "rate_per_s"))
        parts.append(f"{scenario.growth:g} times the data{' and the load' if own else ''}")
    if scenario.memory_bytes is not None and not _follows(scenario, "memory_bytes"):
        parts.append(f"{numbers.size_text(scenario.memory_bytes)} of memory")
    if scenario.buffer_bytes is not None:
        parts.append(f"a buffer of {numbers.size_text(scenario.buffer_bytes)}")
    if scenario.cores is not None and not _follows(scenario, "cores"):
        parts.append(numbers.counted_noun(scenario.cores, "core"))
    if scenario.cpu_speed != 1:
        parts.append(f"cores {scenario.cpu_speed:g} times as fast")
    if scenario.clients is not None:
        parts.append(numbers.counted_noun(scenario.clients, "client"))
    if scenario.rate_per_s is not None and not _follows(scenario, "rate_per_s"):
        parts.append(f"{numbers.significant_text(scenario.rate_per_s)} transactions a second arriving")
    return parts or ["as recorded"]


def _follows(scenario: Scenario, field: str) -> bool:
    """Whether the value of a field follows from growth or from the machine."""
    return field in scenario.set_by_growth or field in scenario.set_by_instance


def move_words(placement: Mapping[Role, str] | Mapping[str, str]) -> str:
    """``the log to ssd-nvme-dc and the data to hdd-7k2``; unmoved roles are omitted."""
    moves = _by_device(placement).items()
    rest = "everything else" if len(placement) > 1 else "everything"
    return join_words([f"{_roles(roles, rest)} to {device}" for device, roles in moves if device != RECORDED])


def prediction_sentence(answer: Prediction) -> str:
    """One prediction as a sentence: the factor of throughput, or why there is no answer."""
    what = _subject(answer.scenario)
    if answer.refused:
        if bound := bound_sentence(answer):
            return f"{what}: {bound}. {answer.refused.message}: {answer.refused.fix}."
        return f"{what}: no answer, because {answer.refused.message}: {answer.refused.fix}."
    if answer.speedup is None:
        return f"{what}: nothing was done in the time that was simulated."
    if not answer.scenario.changes:
        return f"{what}: {time_sentence(answer)}."
    if answer.bounds_only:
        source = "waits" if answer.from_waits else "the replay"
        return f"{what}: {_gain(answer)}; {source} cannot tell more."
    return f"{what}: {_gain(answer)}; then {time_sentence(answer)}."


def time_sentence(answer: Prediction) -> str:
    """``61 % of the sessions' time is spent writing the log``."""
    name, share = max(answer.shares.items(), key=lambda item: item[1], default=("other", 0.0))
    return f"{numbers.percent_text(share)} of the sessions' time is spent {TIME_NAMES.get(name, name)}"


def ranking_sentence(ranking: Ranking) -> str:
    """The best of all placements, and which others may be as good."""
    if not ranking.closer or ranking.closer[0].speedup is None:
        why = ranking.refused
        return f"No placement could be replayed{f': {why.message}: {why.fix}' if why else ''}."
    best = ranking.closer[0]
    tried = f"Best of {numbers.counted_noun(ranking.tried, 'placement')}"
    alike = [prediction for prediction in ranking.closer[1:] if ranking.alike(prediction)]
    others = "one" if len(alike) == 1 else f"{len(alike)}"
    known = f"; the next {others} cannot be told from it" if alike else ""
    where = ", ".join(f"{role} on {device}" for role, device in best.scenario.placement.items())
    return f"{tried}: {where}: {_gain(best)}{known}."


def bound_sentence(answer: Prediction) -> str:
    """``at most 2.3 times as fast: all waits on the log gone``."""
    if answer.bound is None:
        return ""
    return f"at most {numbers.ratio_text(answer.bound.speedup)} times as fast: {answer.bound.because}"


def _gain(answer: Prediction) -> str:
    if answer.speedup is not None and answer.scenario.rate_per_s:
        return _at_rate(answer)
    gained = gain_words(answer)
    if answer.speedup is None or answer.bounds_only:
        return gained
    if not (answer.faster or answer.slower):
        return f"no difference that can be told ({gained})"
    if answer.once and answer.elapsed_s:
        return f"{gained}, {numbers.seconds_text(answer.elapsed_s.value)}"
    return gained


def _at_rate(answer: Prediction) -> str:
    """Result for transactions that arrive at a rate."""
    if answer.rate_per_s is None or answer.p50_us is None or answer.p99_us is None:
        return "no figure"
    if answer.saturated:
        return (
            f"saturated, no more than {numbers.significant_text(answer.rate_per_s.value)} a second are done"
        )
    p50, p99 = (numbers.latency_text(latency.value) for latency in (answer.p50_us, answer.p99_us))
    return f"all are done, half of them within {p50} and 99\u00a0% within {p99}"


def _subject(scenario: Scenario) -> str:
    moved = move_words(scenario.placement)
    others = scenario_parts(scenario.model_copy(update={"placement": {}}))
    with_ = "" if others == ["as recorded"] else join_words(others)
    if moved:
        return f"Move {moved}" + (f", with {with_}" if with_ else "")
    return f"With {with_}" if with_ else "As recorded"


def predictions_headline(answers: Sequence[Prediction]) -> list[str]:
    """The best of the answers as a sentence, and a sentence for each that was refused.

    Of those that are as fast as the fastest, but for chance, the best is that with the fewest moves.
    """
    given = [(answer, answer.speedup.value) for answer in answers if answer.speedup]
    fastest = max((speedup for _, speedup in given), default=0.0)
    as_fast = [answer for answer, speedup in given if speedup * (1 + CHANCE) >= fastest]
    without = [answer for answer in answers if not answer.speedup]  # refused, or nothing was done
    best = sorted(as_fast, key=lambda answer: _moves(answer.scenario.placement))[:1]
    return [prediction_sentence(answer) for answer in [*best, *without]]


def _moves(placement: Mapping[Role, str] | Mapping[str, str]) -> tuple[bool, int]:
    """Sort key: a placement of all roles comes after those of some."""
    return EVERYTHING in placement, sum(device != RECORDED for device in placement.values())


def _by_device(placement: Mapping[Role, str] | Mapping[str, str]) -> dict[str, list[str]]:
    """Full name of each device -> the roles on it."""
    return group_by_key(
        (device if device == RECORDED else resolve_device(device).name, role)
        for role, device in placement.items()
    )


def _roles(roles: Sequence[str], rest: str) -> str:
    def name(role: str) -> str:
        if role == EVERYTHING:
            return rest
        return role if is_relation_name(role) else ROLE_NAMES[Role(role)]

    return join_words([name(role) for role in roles])


def lost_files_sentence(placement: Mapping[Role, str]) -> str:
    """Which files of a placement a stop of the machine loses; empty if it loses none that must last."""
    lost = roles_lost_at_stop(placement)
    if not lost:
        return ""
    files, names = role_names(lost), join_words(list(dict.fromkeys(placement[role] for role in lost)))
    if roles_on_instance_store(placement):
        return f"Caution: a stop of the machine loses {files} on {names}: rebuild these files when it starts."
    return f"Caution: a power cut or a restart of the machine loses {files}, since {names} is memory."


def role_names(roles: Iterable[Role]) -> str:
    """``the log and the data``."""
    return join_words([ROLE_NAMES[role] for role in roles])


def loss_sentences(answers: Sequence[Prediction]) -> list[doc.Block]:
    """What a stop of the machine loses in each scenario, each sentence once."""
    sentences = dict.fromkeys(
        lost_files_sentence(answer.scenario.devices_of(answer.lost_at_stop)) for answer in answers
    )
    return doc.paragraphs(sentences, doc.Tone.WARNING)


def usability_texts(usability: Usability) -> list[doc.Text]:
    """The verdict, then each remark with its remedy."""
    return [doc.Text(sentence) for sentence in usability.sentences]


def joint_document(answers: Sequence[JointPrediction]) -> list[doc.Block]:
    """What sharing costs, a row for each database, and warnings."""
    worst = min(answers, key=lambda answer: answer.kept.value)
    return [
        doc.Text(_sentence(answers, worst), doc.Tone.HEADLINE),
        _table(answers),
        *loss_sentences([answer.together for answer in answers]),
        *caution_blocks(
            _of_databases([(answer.database, answer.together.warnings) for answer in answers]),
            _of_databases([(answer.database, answer.together.cross_checks) for answer in answers]),
        ),
    ]


def _of_databases(texts_of: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Each warning, with the databases that have it where others do not."""
    by_text = group_by_key((text, name) for name, texts in texts_of for text in dict.fromkeys(texts))
    return [
        warning_sentence(text, "" if len(names) == len(texts_of) else ", ".join(names))
        for text, names in by_text.items()
    ]


def _sentence(answers: Sequence[JointPrediction], worst: JointPrediction) -> str:
    lost = 1 - worst.kept.value
    if lost < 0.005:
        return f"Sharing costs none of the {len(answers)} databases anything that the simulation shows."
    between = f"{numbers.percent_text(1 - worst.kept.high)} to {numbers.percent_text(1 - worst.kept.low)}"
    return (
        f"Sharing costs {worst.database} {numbers.percent_text(lost)} of its rate ({between} over the "
        "seeds), "
        f"the most of the {len(answers)} databases."
    )


def _table(answers: Sequence[JointPrediction]) -> doc.Table:
    rows = doc.empty_table(
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
            doc.estimate_cell(answer.alone.rate_per_s, numbers.significant_text),
            doc.estimate_cell(answer.together.rate_per_s, numbers.significant_text),
            speedup_cell(answer.together),
            doc.estimate_cell(answer.alone.p99_us, numbers.latency_text),
            doc.estimate_cell(answer.together.p99_us, numbers.latency_text),
        )
    return rows


_MOST_TIMES = 3
_LEAST_SHARE = 0.05
_MOST_RANKED = 10


def prediction_document(run: RecordedRun, base: Prediction, answers: Sequence[Prediction]) -> list[doc.Block]:
    """The main sentence, then the recorded run and one row for each answer, and warnings."""
    answered = [answer for answer in answers if not answer.refused and answer.scenario.changes]
    blocks: list[doc.Block] = [
        doc.Text(sentence, doc.Tone.HEADLINE) for sentence in predictions_headline(answers)
    ]
    if answered:
        blocks.append(doc.Text(f"As recorded, {time_sentence(base)}."))
    blocks += [doc.Text(f"Recorded: {recorded_sentence(run)}"), prediction_table([base, *answered])]
    return [
        *blocks,
        *_loads(answers),
        *prediction_notes(answered),
        *loss_sentences(answers),
        *prediction_warnings([*answers, base]),
    ]


def ranking_document(run: RecordedRun, base: Prediction, ranking: Ranking) -> list[doc.Block]:
    """The best placements with a column for each role, the main sentence, and the omissions."""
    return [
        doc.Text(ranking_sentence(ranking), doc.Tone.HEADLINE),
        doc.Text(f"Recorded: {recorded_sentence(run)}"),
        ranking_table(base, ranking),
        *(doc.Text(f"Note: {note}.", doc.Tone.WARNING) for note in ranking.notes),
        *prediction_notes(ranking.closer[:1]),
        *loss_sentences(ranking.closer[:1]),
        *prediction_warnings(ranking.closer),
    ]


def prediction_table(answers: Sequence[Prediction]) -> doc.Table:
    """One row for each answer; the others are compared with the first."""
    timed = answers[0].once
    latencies = () if timed else ("p50\nlatency", "p99\nlatency")
    chief = "time" if timed else f"{answers[0].unit}/s"
    rows = doc.empty_table(["scenario"], (chief, "times\nfaster", *latencies), after=["time goes to"])
    for answer in answers:
        shown = [] if timed else [answer.p50_us, answer.p99_us]
        rows.add(
            "\n".join(scenario_parts(answer.scenario)),
            time_or_rate_cell(answer, timed),
            speedup_cell(answer),
            *(doc.estimate_cell(latency, numbers.latency_text) for latency in shown),
            _times(answer),
        )
    return rows


def ranking_table(base: Prediction, ranking: Ranking) -> doc.Table:
    """The best placements; those not distinguishable from the best are marked."""
    chief = "time" if base.once else f"{base.unit}/s"
    rankings = doc.empty_table(["rank", *ranking.roles], [chief, "times\nfaster", "p99\nlatency"])
    for number, answer in enumerate(ranking.closer[:_MOST_RANKED], start=1):
        mark = "=" if number > 1 and ranking.alike(answer) else ""
        rankings.add(
            f"{number}{mark}",
            *(answer.scenario.placement.get(role, RECORDED) for role in ranking.roles),
            time_or_rate_cell(answer, base.once),
            speedup_cell(answer),
            doc.estimate_cell(answer.p99_us, numbers.latency_text),
        )
    return rankings


def prediction_notes(answers: Sequence[Prediction]) -> list[doc.Text]:
    """The bound and the notes of each answer; if there are several, each line names its answer."""
    texts: dict[str, None] = {}
    for answer in answers:
        own = [*([bound_sentence(answer)] if answer.bound else []), *answer.notes]
        name = f"{', '.join(scenario_parts(answer.scenario))}: " if len(answers) > 1 else ""
        keeps = answer.scenario.selected or answer.scenario.settings  # a name keeps its letters
        begin = str if keeps and name else capitalized
        texts |= dict.fromkeys(begin(f"{name}{sentence.rstrip('.')}.") for sentence in own)
    return [doc.Text(sentence) for sentence in texts]


def prediction_warnings(answers: Sequence[Prediction]) -> list[doc.Block]:
    """The warnings of all answers, each once with its scenario, the first few in sight.

    What another model says is folded.
    """
    return caution_blocks(
        _named([(answer, answer.warnings) for answer in answers]),
        _named([(answer, answer.cross_checks) for answer in answers]),
    )


def _named(texts_of: Sequence[tuple[Prediction, Sequence[str]]]) -> list[str]:
    """Each warning; one that not all answers have names the first that has it."""
    by_text = group_by_key(
        (text, answer) for answer, sentences in texts_of for text in dict.fromkeys(sentences)
    )
    changed = sum(bool(answer.scenario.changes) for answer, _ in texts_of)
    return [
        warning_sentence(text, "" if len(of) >= changed else ", ".join(scenario_parts(of[0].scenario)))
        for text, of in by_text.items()
    ]


def warning_texts(warnings: Iterable[str]) -> list[doc.Text]:
    """Warnings, one line each."""
    return [doc.Text(warning_sentence(warning), doc.Tone.WARNING) for warning in warnings]


def speedup_cell(answer: Prediction) -> doc.Cell:
    """The ratio to the recorded run, marked where the interval excludes no change."""
    if answer.speedup is None or not answer.scenario.changes:
        return doc.Cell(numbers.NONE)
    tone = doc.Tone.BETTER if answer.faster else doc.Tone.WORSE if answer.slower else doc.Tone.PLAIN
    return replace(doc.estimate_cell(answer.speedup, numbers.ratio_text), tone=tone)


def time_or_rate_cell(answer: Prediction, timed: bool) -> doc.Cell:
    """The time of work done once, or else the rate."""
    return (
        doc.estimate_cell(answer.elapsed_s, numbers.seconds_text)
        if timed
        else doc.estimate_cell(answer.rate_per_s, numbers.significant_text)
    )


def gain_headings(unit: str, currency: str, timed: bool) -> list[str]:
    """Headings of :func:`gain_cells`; ``unit`` is what rates count."""
    money = numbers.per_month_unit(currency)
    return ["time" if timed else f"{unit}/s", "times\nfaster", "more/s", money]


def gain_cells(move: SettingChange | MemoryIncrease | MachineChange, timed: bool) -> list[doc.Cell | str]:
    """Rate, gain and price of what takes the place of a move of files."""
    return [
        time_or_rate_cell(move.prediction, timed),
        speedup_cell(move.prediction),
        doc.figure_cell(move.gain_per_s, numbers.significant_text),
        doc.figure_cell(move.cost_per_month, numbers.cents_text),
    ]


_NO_FLUSHES = (
    "No flushes: the kernel sends none to a device that keeps acknowledged writes through a power cut."
)


def _loads(answers: Sequence[Prediction]) -> list[doc.Table | doc.Text]:
    """The I/O load of each role on its device, for a single answer."""
    if len(answers) != 1 or not answers[0].io:
        return []
    loads_table = doc.empty_table(
        [], ["files", "reads/s", "writes/s", "flushes/s", "busy"], names=["role", "on"]
    )
    for role, load in answers[0].io.items():
        loads_table.add(
            role,
            load.device,
            doc.figure_cell(load.size_bytes, numbers.size_text),
            _with_bytes(load.reads_per_s, load.read_bytes_per_s),
            _with_bytes(load.writes_per_s, load.written_bytes_per_s),
            doc.figure_cell(load.flushes_per_s, numbers.significant_text),
            doc.figure_cell(load.busy_share, numbers.percent_text),
        )
    loads = answers[0].io.values()
    write_through = any(
        load.writes_per_s and not load.flushes_per_s and load.device != RECORDED for load in loads
    )
    return [loads_table, *([doc.Text(_NO_FLUSHES, doc.Tone.QUIET)] if write_through else [])]


def _with_bytes(rate_per_s: float, bytes_per_s: float) -> doc.Cell:
    below = doc.Text(f"{numbers.size_text(bytes_per_s)}/s", doc.Tone.QUIET)
    return replace(doc.figure_cell(rate_per_s, numbers.significant_text), below=(below,))


def _times(answer: Prediction) -> str:
    ordered = sorted(answer.shares.items(), key=lambda item: item[1], reverse=True)[:_MOST_TIMES]
    chief = [(name, share) for name, share in ordered if share >= _LEAST_SHARE]
    return "\n".join(f"{numbers.percent_text(share)} {TIME_NAMES.get(name, name)}" for name, share in chief)


def predictions_chart(base: Prediction, answers: Sequence[Prediction]) -> alt.LayerChart:
    """Rate, or time for work done once, of the recorded run and of each answer that has one."""
    shown = [base, *(answer for answer in answers if answer.rate_per_s and answer.scenario.changes)]
    title = "Predicted time (s)" if base.once else f"Predicted {base.unit} a second"
    text = numbers.seconds_text if base.once else numbers.significant_text
    dots = [
        dot_of_interval(
            ", ".join(scenario_parts(answer.scenario)),
            "",
            Interval(elapsed_s.value, elapsed_s.low, elapsed_s.high, 1),
            text,
        )
        for answer in shown
        if (elapsed_s := answer.elapsed_s if base.once else answer.rate_per_s)
    ]
    return dot_chart(dots, zero_x_axis(f"{title}, 95 % interval", WIDE), {"": "place-1"}, WIDE, title)
