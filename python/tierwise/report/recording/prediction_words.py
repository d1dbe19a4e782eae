"""Predictions in words: the main sentence, usability, warnings (at most three in sight)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tierwise.advise import Advice, Caution
from tierwise.model.placement import EVERYTHING, Role, is_relation
from tierwise.predict import RECORDED, Estimate, Prediction, RecordedRun, Scenario, resolve
from tierwise.predict.ranking import Ranking
from tierwise.predict.usability import Usability
from tierwise.report import numbers
from tierwise.report.document import Block, Section, Text, Tone, texts
from tierwise.report.moves import ROLE_NAMES, join

MOST_IN_SIGHT = 3
"""Warnings that are shown at once."""
_MOST_PLACES = 2


def advice_cautions(advice: Advice) -> list[Block]:
    """The warnings of an advice, and what another model says, which is always folded."""
    return caution_blocks(map(_placed, advice.warnings), map(_placed, advice.cross_checks))


def caution_blocks(warnings: Iterable[str], folded: Iterable[str] = ()) -> list[Block]:
    """The first warnings in sight, the others folded.

    Args:
        warnings: by :func:`warning_sentence`, those that matter most first.
        folded: further ones that are never in sight.
    """
    first, more = list(warnings), list(folded)
    shown, rest = first[:MOST_IN_SIGHT], [*first[MOST_IN_SIGHT:], *more]
    blocks: list[Block] = texts(shown, Tone.WARNING)
    if rest:
        title = f"{len(rest)} more warning{'s' if len(rest) > 1 else ''}"
        blocks.append(Section(title, texts(rest, Tone.WARNING), folded=True))
    return blocks


def warning_sentence(text: str, where: str = "") -> str:
    """``Warning, the log to ssd-nvme-dc: …``, with what it is about."""
    return f"Warning{f', {where}' if where else ''}: {text.rstrip('.')}."


def _placed(caution: Caution) -> str:
    return warning_sentence(caution.text, _places(caution.placements))


def _places(placements: Sequence[Mapping[Role, str]]) -> str:
    """``with the log to ram, or …``; empty for a warning of all placements."""
    named = [moving(placement) for placement in placements[:_MOST_PLACES]]
    more = len(placements) - len(named)
    return " or ".join([*named, *([f"{more} more placements"] if more else [])])


TIME_NAMES = {
    "cpu": "on CPU",
    "runnable": "waiting for a core",
    "log_device": "writing the log",
    "log_queue": "behind others' log flushes",
    "read": "reading files",
    "write": "writing files",
    "lock": "waiting for locks or other threads",
    "client": "at the client",
    "sleep": "asleep",
    "other": "elsewhere",
}


def span(figure: Estimate) -> str:
    """``2.8–3.4``: the interval of a ratio."""
    return numbers.span(numbers.ratio(figure.low), numbers.ratio(figure.high))


def times(speedup: Estimate) -> str:
    """``3.1 (2.8–3.4) times``."""
    return f"{numbers.ratio(speedup.value)} ({span(speedup)}) times"


def of_what(answer: Prediction) -> str:
    """The quantity that a speed-up multiplies."""
    what = "as fast" if answer.once else "the throughput"
    return f"{what}, from waits only" if answer.from_waits else what


def recorded_sentence(run: RecordedRun) -> str:
    """The recorded run, and its reproduction error."""
    engine = f"{run.engine} {run.engine_version}" if run.engine_version else run.engine
    clients = f"{run.clients} client{'s' if run.clients != 1 else ''}"
    if run.pooler is not None:
        clients = f"{run.clients} session{'s' if run.clients != 1 else ''} of {run.pooler}"
    took = numbers.seconds(run.duration_s)
    if run.once:
        recorded, replayed = f"done in {took}", numbers.seconds(run.duration_s / (1 + run.error))
    else:
        recorded = f"{took}: {numbers.significant(run.rate_per_s)} {run.unit} a second"
        replayed = numbers.significant(run.reproduced_rate_per_s)
    if run.from_waits:
        return f"{engine}, observed over SQL, {clients}, {recorded}; the coarse model gives {replayed}."
    rate = "rate " if run.once else ""
    return (
        f"{engine}, {clients}, {run.cores} cores, {recorded}; "
        f"replayed {replayed} ({rate}{signed_percent(run.error)})."
    )


def signed_percent(error: float) -> str:
    """``+3.1 %``."""
    return f"{'+' if error >= 0 else '−'}{numbers.percent(abs(error))}"


def scenario_parts(scenario: Scenario) -> list[str]:
    """Changes of a scenario, one line each."""
    parts = [f"{', '.join(roles)} on {device}" for device, roles in _by_device(scenario.placement).items()]
    parts += scenario.settings
    if scenario.instance is not None:
        parts.append(f"machine {scenario.instance.name}")
    if scenario.growth is not None:
        parts.append(f"{scenario.growth:g} times the data and the load")
    if scenario.memory_bytes is not None and not _follows(scenario, "memory_bytes"):
        parts.append(f"{numbers.size(scenario.memory_bytes)} of memory")
    if scenario.buffer_bytes is not None:
        parts.append(f"a buffer of {numbers.size(scenario.buffer_bytes)}")
    if scenario.cores is not None and not _follows(scenario, "cores"):
        parts.append(f"{scenario.cores} core{'s' if scenario.cores != 1 else ''}")
    if scenario.cpu_speed != 1:
        parts.append(f"cores {scenario.cpu_speed:g} times as fast")
    if scenario.clients is not None:
        parts.append(f"{scenario.clients} client{'s' if scenario.clients != 1 else ''}")
    if scenario.rate_per_s is not None and not _follows(scenario, "rate_per_s"):
        parts.append(f"{numbers.significant(scenario.rate_per_s)} transactions a second arriving")
    return parts or ["as recorded"]


def _follows(scenario: Scenario, field: str) -> bool:
    """Whether the value of a field follows from growth or from the machine."""
    return field in scenario.set_by_growth or field in scenario.set_by_instance


def moving(placement: Mapping[Role, str] | Mapping[str, str]) -> str:
    """``the log to ssd-nvme-dc and the data to hdd-7k2``; unmoved roles are omitted."""
    moves = _by_device(placement).items()
    rest = "everything else" if len(placement) > 1 else "everything"
    return join([f"{_roles(roles, rest)} to {device}" for device, roles in moves if device != RECORDED])


def answer_sentence(answer: Prediction) -> str:
    """One prediction as a sentence: the factor of throughput, or why there is no answer."""
    what = _subject(answer.scenario)
    if answer.refused:
        return f"{what}: no answer. {answer.refused.message}: {answer.refused.fix}."
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
    return f"{numbers.percent(share)} of the sessions' time is spent {TIME_NAMES.get(name, name)}"


def ranking_sentence(ranking: Ranking) -> str:
    """The best of all placements, and which others may be as good."""
    if not ranking.closer or ranking.closer[0].speedup is None:
        return "No placement could be replayed."
    best = ranking.closer[0]
    tried = f"Best of {ranking.tried:,} placements".replace(",", "\u202f")
    alike = [prediction for prediction in ranking.closer[1:] if ranking.alike(prediction)]
    known = f"; the next {len(alike)} cannot be told from it" if alike else ""
    where = ", ".join(f"{role} on {device}" for role, device in best.scenario.placement.items())
    return f"{tried}: {where}: {_gain(best)}{known}."


def bound_sentence(answer: Prediction) -> str:
    """``at most 2.3 times as fast: all waits on the log gone``."""
    if answer.bound is None:
        return ""
    return f"at most {numbers.ratio(answer.bound.speedup)} times as fast: {answer.bound.because}"


def _gain(answer: Prediction) -> str:
    speedup = answer.speedup
    if speedup is None:
        return "no figure"
    if answer.scenario.rate_per_s:
        return _at_rate(answer)
    if answer.bounds_only:
        return (
            f"between {numbers.ratio(speedup.low)} and {numbers.ratio(speedup.high)} times {of_what(answer)}"
        )
    gained = f"{times(speedup)} {of_what(answer)}"
    if not (answer.faster or answer.slower):
        return f"no difference that can be told ({gained})"
    if answer.once and answer.elapsed_s:
        return f"{gained}, {numbers.seconds(answer.elapsed_s.value)}"
    return gained


def _at_rate(answer: Prediction) -> str:
    """Result for transactions that arrive at a rate."""
    if answer.rate_per_s is None or answer.p50_us is None or answer.p99_us is None:
        return "no figure"
    if answer.saturated:
        return f"saturated, no more than {numbers.significant(answer.rate_per_s.value)} a second are done"
    p50, p99 = (numbers.microseconds(latency.value) for latency in (answer.p50_us, answer.p99_us))
    return f"all are done, half of them within {p50} and 99\u00a0% within {p99}"


def _subject(scenario: Scenario) -> str:
    moved = moving(scenario.placement)
    others = scenario_parts(scenario.model_copy(update={"placement": {}}))
    with_ = "" if others == ["as recorded"] else join(others)
    if moved:
        return f"Move {moved}" + (f", with {with_}" if with_ else "")
    return f"With {with_}" if with_ else "As recorded"


def headline(answers: Sequence[Prediction]) -> list[str]:
    """The best of the answers as a sentence, and a sentence for each that was refused."""
    given = [answer for answer in answers if answer.speedup]
    best = max(given, key=lambda answer: answer.speedup.value if answer.speedup else 0.0, default=None)
    refused = [answer for answer in answers if answer.refused]
    return [answer_sentence(answer) for answer in ([best] if best else []) + refused]


def _by_device(placement: Mapping[Role, str] | Mapping[str, str]) -> dict[str, list[str]]:
    """Full name of each device -> the roles on it."""
    by_device: dict[str, list[str]] = {}
    for role, device in placement.items():
        by_device.setdefault(device if device == RECORDED else resolve(device).name, []).append(role)
    return by_device


def _roles(roles: Sequence[str], rest: str) -> str:
    def name(role: str) -> str:
        if role == EVERYTHING:
            return rest
        return role if is_relation(role) else ROLE_NAMES[Role(role)]

    return join([name(role) for role in roles])


def usability_texts(usability: Usability) -> list[Text]:
    """The verdict, then each remark with its remedy."""
    return [Text(sentence) for sentence in usability.sentences]
