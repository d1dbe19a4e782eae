"""The state that an answer holds for: page cache, checkpoints, the database's size, devices; as sentences."""

from __future__ import annotations

from tierwise.model.placement import Role
from tierwise.model.units import GB, significant_text
from tierwise.predict import scenario_machine
from tierwise.predict.named_devices import RECORDED, resolve_device
from tierwise.predict.prediction import RecordedRun
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import SimulationOutcome, WorkSummary, time_share

_PAGES = (Role.DATA, Role.INDEX, Role.UNDO, Role.SYSTEM)
"""Roles whose pages a checkpoint writes."""
_CHANGED = 0.1
"""Relative change of requests above which a sentence names it."""
_LEAST = 0.01
"""Requests a transaction below which they count as none."""


def assumption_notes(
    scenario: Scenario,
    run: RecordedRun,
    work: WorkSummary,
    outcomes: tuple[SimulationOutcome, SimulationOutcome],
    fresh: bool,
) -> list[str]:
    """The assumptions of an answer about caches, checkpoints and devices."""
    recorded, answer = outcomes
    run = run.changed(clients=scenario.clients or run.clients)
    texts = [scenario_machine.growth_assumptions(scenario, run, work)]
    if not work.from_waits:
        texts += [_cache(run, work, answer), _checkpoints(run, recorded, answer), _size(run, work)]
    texts.append(scenario_machine.instance_note(scenario, fresh))
    if devices := _devices(scenario, work):
        state = "as new" if fresh or scenario.emulated else "after long use"
        texts.append(f"devices {state}: {', '.join(devices)}")
    return [sentence for sentence in texts if sentence]


def _cache(run: RecordedRun, work: WorkSummary, answer: SimulationOutcome) -> str:
    """Reads of a transaction, recorded and predicted, and the time to warm the page cache."""
    before = sum(work.demands.reads.values())
    after = _per_unit(run, answer, sum(role_io.reads for role_io in answer.io))
    if before < _LEAST and after < _LEAST:
        return "page cache: as good as every read is answered from memory, as in the recording"
    sentence = (
        f"page cache: {_count(after)} reads of a device {_each(run)}, {_count(before)} in the recording"
    )
    if work.once or after > (1 - _CHANGED) * before:
        return sentence
    return f"{sentence}: once it is warm{_warming(run, work, answer, before - after)}"


def _warming(run: RecordedRun, work: WorkSummary, answer: SimulationOutcome, more_reads: float) -> str:
    """Rate until the cache is warm, if each read takes as long as the predicted ones, and longest time."""
    reads = sum(role_io.reads for role_io in answer.io)
    done = answer.transactions if run.unit == "transactions" else answer.turns
    if reads == 0 or done == 0:
        return ""
    response_s = run.clients * answer.elapsed_s / done
    read_s = response_s * time_share(answer.shares, ("read",)) * done / reads
    rate = run.clients / (response_s + more_reads * read_s)
    each_bytes = sum(role_io.read_bytes for role_io in answer.io) / reads
    all_bytes = sum(work.footprints.get(role, 0) for role in _PAGES)
    per_s = rate * (more_reads + reads / done) * each_bytes
    longest_s = all_bytes / per_s if per_s > 0 else 0.0
    until = f"about {significant_text(rate)} {run.unit}/s, for {significant_text(longest_s, 2)} s at most"
    return f"; until then {until}"


def _checkpoints(run: RecordedRun, recorded: SimulationOutcome, answer: SimulationOutcome) -> str:
    """Writes of pages to their files."""
    logged = any(role_io.writes for role_io in recorded.io if role_io.role == Role.LOG)
    before, after = (
        _per_unit(run, outcome, sum(role_io.writes for role_io in outcome.io if role_io.role in _PAGES))
        for outcome in (recorded, answer)
    )
    if logged and before == 0 and after == 0:
        return "no checkpoint was recorded, and the answer has none: with one, it would be slower for a time"
    if before > _LEAST and abs(after / before - 1) > _CHANGED:
        return f"checkpoints: {_count(after)} writes of pages {_each(run)}, {_count(before)} in the recording"
    return ""


def _size(run: RecordedRun, work: WorkSummary) -> str:
    if run.data_directory_bytes is None:
        return ""
    touched = sum(work.footprints.values())
    whole, elsewhere = "the database", ""
    if touched > run.data_directory_bytes:
        whole, elsewhere = "the data directory", ", some of them elsewhere"
    return (
        f"{whole} has {run.data_directory_bytes / GB:,.3g} GB; files of {touched / GB:,.3g} GB were "
        f"touched{elsewhere}, and those alone are placed"
    )


def _per_unit(run: RecordedRun, outcome: SimulationOutcome, count: int) -> float:
    done = outcome.transactions if run.unit == "transactions" else outcome.turns
    return count / done if done else 0.0


def _each(run: RecordedRun) -> str:
    return f"a {run.unit.removesuffix('s')}"


def _count(number: float) -> str:
    return significant_text(number) if number >= 99.5 else f"{number:.2g}"


def _devices(scenario: Scenario, work: WorkSummary) -> list[str]:
    """Devices of the scenario that long use makes slower."""
    placed = dict.fromkeys(scenario.devices_of(work.footprints).values())
    return [
        name
        for name in placed
        if name != RECORDED and resolve_device(name).profile.kind in ("ssd", "volume", "array")
    ]
