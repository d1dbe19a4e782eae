"""A recording that was just taken, or an observation, as a document: size, cost, checks, usability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tierwise.model import numbers
from tierwise.predict.time_savings import TimeSavings
from tierwise.predict.usability import Usability, UsabilityFields
from tierwise.recording import (
    Observation,
    Recording,
    RecordingCheck,
    RecordingCost,
    RecordingMetadata,
    clients_sentence,
)
from tierwise.recording.observation import PARTS
from tierwise.report.document import Block, Cell, Document, Table, Text, Tone, empty_table, figure_cell
from tierwise.report.recording.decision_words import doubt_texts
from tierwise.report.recording.prediction_report import usability_texts, warning_texts
from tierwise.report.recording.profile_report import (
    PART_NAMES,
    profile_finding,
    profile_tables,
    profile_warnings,
    role_name,
)
from tierwise.results.measurements import StrictModel


class TakenRecording(StrictModel):
    """A recording that was just taken."""

    path: str
    """Its folder."""
    about: RecordingMetadata
    """Its metadata."""
    usability: UsabilityFields
    """Whether predictions can be made from it."""

    @classmethod
    def of(cls, opened: Recording, judged: Usability) -> TakenRecording:
        """From the recording and its usability."""
        return cls(path=str(opened.path), about=opened.about, usability=judged.fields)


def taken_recording_document(opened: Recording, usability: Usability) -> list[Block]:
    """Figures, checks and warnings of the recording, then whether it can be used."""
    return [
        *(Text(line) for line in _lines(opened)),
        checks_table(opened.about.checks),
        *warning_texts(opened.warnings),
        Text(f"recording: {opened.path}"),
        *usability_texts(usability),
    ]


def add_usability_verdict(judged: Usability, answers: Document) -> list[Block]:
    """Answers from a recording: before them what makes it unusable or doubtful, after them the verdict."""
    return [*doubt_texts(judged.usable, judged.ordered), *answers, Text(judged.verdict)]


def checks_table(checks: Sequence[RecordingCheck]) -> Table:
    """A row for each check that a recording made of itself."""
    checks_table = empty_table(["check", "state", "detail"], [])
    for check in checks:
        state = Cell("passed") if check.passed else Cell("FAILED", Tone.WORSE)
        checks_table.add(check.name, state, check.detail)
    return checks_table


def _lines(opened: Recording) -> Iterator[str]:
    about = opened.about
    yield (
        f"recorded {about.engine} for {about.duration_s:.1f} s: "
        f"{numbers.counted_noun(len(about.bursts), 'burst')}, {about.bursts_s:.1f} s, "
        f"{numbers.counted_noun(about.losses.recorded_events, 'event')}, "
        f"{numbers.count_text(about.losses.lost_events)} lost, {numbers.size_text(opened.size_bytes)}"
    )
    yield _cost(about.cost, about.bursts_s / about.duration_s if about.duration_s > 0 else 1.0)
    if about.clients:
        yield clients_sentence(about.clients)
    if about.transactions is not None and about.duration_s > 0:
        rate_per_s = about.transactions / about.duration_s
        counted = numbers.counted_noun(about.transactions, "transaction")
        yield f"counted by the engine: {counted}, {rate_per_s:,.1f}/s"
    if about.data_directory_bytes:
        yield f"data directory: {numbers.size_text(about.data_directory_bytes)}"


def _cost(cost: RecordingCost | None, duty: float) -> str:
    """What the database lost over the whole recording, then within bursts."""
    if cost is None or cost.rate_ratio_low <= 0:
        return "cost: not measured, because no unrecorded time lies beside two bursts"
    if not cost.is_known:
        return "cost: not known, because the work varied more from burst to burst than recording can tell"
    low, lost, high = (
        100 * (1 - ratio) for ratio in (cost.rate_ratio_high, cost.rate_ratio, cost.rate_ratio_low)
    )
    server = ""
    if cost.knows_cpu:
        server = (
            f"; there the server takes {cost.cpu_ratio:.2f} times (95\u00a0%: {cost.cpu_ratio_low:.2f} to "
            f"{cost.cpu_ratio_high:.2f}) the CPU time for a switch"
        )
    return (
        f"cost: {max(duty * lost, 0.0):.1f}\u00a0% of the rate over the whole recording "
        f"(95\u00a0%: {max(duty * low, 0.0):.1f} to {max(duty * high, 0.0):.1f}); within bursts, "
        f"{100 * duty:.0f}\u00a0% of the time, {lost:.1f}\u00a0% (95\u00a0%: {low:.1f} to {high:.1f}){server}"
    )


_MOST_EVENTS = 12


def observation_document(seen: Observation, saved: TimeSavings | None = None) -> list[Block]:
    """The wait profile: the main finding, its extent, shares of time, events, sizes, and limits."""
    gains = saved or TimeSavings()
    breakdown = seen.break_down()
    return [
        Text(profile_finding(breakdown, gains), Tone.HEADLINE),
        Text(observation_extent(seen)),
        *profile_tables(breakdown, gains),
        _events(seen),
        _sizes(seen),
        *warning_texts(profile_warnings(gains, seen.limits)),
    ]


def observation_extent(seen: Observation) -> str:
    """How much was seen, and from what."""
    engine = " ".join(filter(None, [seen.engine, seen.engine_version]))
    error = max(seen.sampling_errors.values(), default=1.0)
    rate = ""
    if seen.transactions is not None:
        rate = f"; {numbers.significant_text(seen.transactions / seen.counted_s)} transactions a second"
    sessions, samples = numbers.significant_text(seen.sessions), numbers.significant_text(seen.rate_hz)
    return (
        f"From waits only: {engine}, observed over SQL for {numbers.seconds_text(seen.duration_s)}, "
        f"{sessions} sessions sampled {samples} times a second{rate}. "
        f"Sampling error of the shares: {numbers.percent_text(error)} at most (95\u00a0%)."
    )


def _events(seen: Observation) -> Table:
    shown = empty_table(["waited for", "part", "role"], ["sessions", "share"], "What sessions waited for")
    for wait in seen.waits[:_MOST_EVENTS]:
        shown.add(
            wait.event,
            PART_NAMES[PARTS[wait.wait_class]],
            role_name(wait.role) if wait.role else numbers.NONE,
            figure_cell(wait.sessions, numbers.significant_text),
            figure_cell(wait.sessions / seen.sessions, numbers.percent_text),
        )
    return shown


def _sizes(seen: Observation) -> Table:
    shown = empty_table(["role", "on"], ["files"], "Sizes by role")
    for role, size_bytes in seen.sizes.items():
        shown.add(role, seen.devices.get(role, numbers.NONE), figure_cell(size_bytes, numbers.size_text))
    return shown
