"""Instead of a move: another setting, more memory, a larger machine; what each gains, costs and may lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tierwise.advise.durability import PowerCutCounts, shipped_power_cuts
from tierwise.advise.priced_placement import MARGIN, Goal, PricedPlacement, is_rate_unchanged, is_sure_gain
from tierwise.device_models.instances import CloudInstance, instance_limits_only, larger_instances
from tierwise.device_models.prices import PriceList
from tierwise.model import numbers
from tierwise.model.placement import Role
from tierwise.model.statistics import share_interval
from tierwise.model.units import money_sum
from tierwise.predict import Estimate, Prediction, Predictor, Scenario, database_settings, estimates
from tierwise.predict.database_settings import ChosenSetting
from tierwise.predict.prediction import Bound
from tierwise.predict.ranking import scenario_with_placement
from tierwise.predict.scenario_machine import network_volumes
from tierwise.results.measurements import StrictModel


class AlternativeToMove(StrictModel):
    """One change of the recorded run, every file where it was recorded."""

    prediction: Prediction
    gain_per_s: float
    """More transactions a second than without the change."""
    cost_per_month: float | None
    """Of what is added, or the difference of two rents; ``None`` without a price in the currency."""
    worthwhile: bool
    """Whether its gain alone can be told from none, and the median latency gets no longer."""


def _compared_with_staying(answer: Prediction, staying: Prediction) -> dict[str, Any] | None:
    """The answer to an alternative, compared with staying as one is; ``None`` if either has no rate."""
    if answer.rate_per_s is None or staying.rate_per_s is None:
        return None
    return {
        "prediction": answer,
        "gain_per_s": answer.rate_per_s.value - staying.rate_per_s.value,
        "worthwhile": is_sure_gain(answer, staying),
    }


class MachineChange(AlternativeToMove):
    """Another machine: its limits, its cores and, where the recording tells what that changes, its memory."""

    instance: str
    """Its name, such as ``m6i.xlarge``."""
    vcpus: int | None
    """Processors that the operating system sees."""
    memory_gib: float | None
    """Memory, in GiB."""
    with_moves: Prediction | None
    """With the recommended placement; ``None`` if that is to stay."""


def current_machine(instances: Sequence[CloudInstance], recorded_on: Mapping[str, str]) -> Scenario:
    """The machine of every placement: the limits of the first instance, with the recorded cores and memory.

    Args:
        instances: the machine of the database, then others; none for no limits.
        recorded_on: role, or ``all``, -> what the recorded device is.
    """
    if not instances:
        return Scenario()
    limits = instance_limits_only(instances[0])
    return Scenario(instance=limits, recorded_volumes=network_volumes(recorded_on, limits))


def machine_changes(
    predictor: Predictor,
    instances: Sequence[CloudInstance],
    staying: Prediction,
    option: PricedPlacement,
    currency: str,
) -> list[MachineChange]:
    """Each other machine that the recording can answer: those named, or the larger ones of the family.

    Args:
        predictor: of the recording.
        instances: the machine of the database, then others; none for no such moves.
        staying: every file where it is, on the machine of the database.
        option: the recommended placement.
        currency: of the prices.
    """
    if not instances:
        return []
    now, *others = instances
    machines = [other for other in others or larger_instances(now) if other.name != now.name]
    alone = [staying.scenario.changed(instance=machine) for machine in machines]
    moved: list[Scenario] = (
        [] if option.stays else [scenario_with_placement(scenario, option.placement) for scenario in alone]
    )
    answers = predictor.predict([*alone, *moved])
    both: Sequence[Prediction | None] = answers[len(alone) :] or [None] * len(alone)
    return [
        MachineChange(
            instance=machine.name,
            vcpus=machine.vcpus,
            memory_gib=machine.memory_gib,
            cost_per_month=rent_difference(now, machine, currency),
            with_moves=beside if beside and beside.rate_per_s else None,
            **compared,
        )
        for machine, answer, beside in zip(machines, answers, both, strict=False)
        if (compared := _compared_with_staying(answer, staying))
    ]


def rent_difference(now: CloudInstance, other: CloudInstance, currency: str) -> float | None:
    """Rent of another machine less that of the present one, a month; ``None`` if one is not known."""
    if now.per_month is None or other.per_month is None or {now.currency, other.currency} != {currency}:
        return None
    return money_sum((other.per_month, -now.per_month))


def machine_assumptions(instances: Sequence[CloudInstance], cores: int) -> list[str]:
    """What the limits of the machine are assumed to be about, as sentences; none without a machine.

    Args:
        instances: the machine of the database, then others.
        cores: recorded ones.
    """
    vcpus = instances[0].vcpus if instances else None
    if vcpus is None or vcpus == cores:
        return []
    name = instances[0].name
    return [
        f"{name} has {numbers.counted_noun(vcpus, 'processor')} and the recorded machine {cores}: "
        f"placements have the limits of {name}, and the recorded cores and memory; tierwise predict "
        f"--instance has all of {name}"
    ]


class MeasuredCommitLoss(StrictModel):
    """Power cuts of studies with a setting that is not durable."""

    harmed: int
    """Cuts that lost acknowledged commits or damaged the database."""
    cuts: int
    low: float
    """Low end of the 95 % interval of the share of such cuts, by Clopper and Pearson."""
    high: float
    """Its high end."""


class SettingInstructions(StrictModel):
    """A setting with another value: what it costs and may lose, how to set it, how to go back."""

    setting: str
    """``synchronous_commit=off``."""
    cost_per_month: float = 0.0
    """Always 0: there is nothing to buy."""
    loses: str
    """What may be lost, when, and what a crash then takes, in words."""
    there: str
    """How to set it."""
    back: str
    """How to go back."""
    note: str
    """What else to know of it; may be empty."""
    restart: bool
    """Whether the database or its program has to start again."""
    source: str
    """Address of the documentation."""


class SettingChange(SettingInstructions, AlternativeToMove):
    """One setting with another value, every file where it was recorded."""

    cost_per_month: float = 0.0
    """Always 0: there is nothing to buy."""
    loses_s: float | None
    """Documented bound of what is lost, in seconds; ``None`` if there is none."""
    measured: MeasuredCommitLoss | None
    """Of studies with this engine and setting, on devices that obey flushes; ``None`` if none tried it."""
    with_move: Prediction | None = None
    """With the recommended placement; ``None`` if that is to stay."""


def setting_changes(predictor: Predictor, staying: Prediction) -> list[SettingChange]:
    """Each setting of the recorded engine that the recording can answer, the greatest gain first.

    Args:
        predictor: of the recording.
        staying: what they are compared with.
    """
    tried = database_settings.advised_settings(predictor.about)
    answers = predictor.predict([staying.scenario.changed(settings=[setting.text]) for setting in tried])
    moves = [
        _setting_change(setting, answer, staying) for setting, answer in zip(tried, answers, strict=True)
    ]
    return sorted((move for move in moves if move), key=lambda move: move.gain_per_s, reverse=True)


class SettingGainBound(SettingInstructions):
    """A setting of which the recording tells a bound of the gain alone, or nothing: no decision names it."""

    bound: Bound | None
    """``None`` if the recording tells nothing, or if it would change nothing."""
    why: str
    """Why there is no prediction, in words."""


def setting_gain_bounds(predictor: Predictor, staying: Prediction) -> list[SettingGainBound]:
    """Each setting of the recorded engine that costs nothing and is not predicted; none of an observation.

    Args:
        predictor: of the recording.
        staying: what they are compared with.
    """
    if predictor.work.from_waits:
        return []
    tried = database_settings.unpredicted_settings(predictor.about)
    answers = predictor.predict([staying.scenario.changed(settings=[setting.text]) for setting in tried])
    return [
        SettingGainBound(
            bound=answer.bound,
            why=answer.refused.message if answer.refused else "",
            **_setting_instructions(setting),
        )
        for setting, answer in zip(tried, answers, strict=True)
    ]


def settings_with_placement(
    predictor: Predictor,
    moves: Sequence[SettingChange],
    placement: Mapping[Role, str],
    staying: Prediction,
) -> list[SettingChange]:
    """The same settings, each with its answer for a placement; as they are for one that moves nothing.

    Args:
        predictor: of the recording.
        moves: the settings.
        placement: the recommended one.
        staying: what they are compared with.
    """
    if not placement:
        return list(moves)
    placed = scenario_with_placement(staying.scenario, placement)
    answers = predictor.predict([placed.changed(settings=[move.setting]) for move in moves])
    return [move.changed(with_move=answer) for move, answer in zip(moves, answers, strict=True)]


def setting_instead_of_move(
    moves: Sequence[SettingChange],
    option: PricedPlacement,
    goal: Goal | None,
    may_lose_s: float | None,
    safest_first: Sequence[str],
) -> SettingChange | None:
    """The setting to recommend in place of an option: it loses no more than is allowed and reaches as much.

    Args:
        moves: settings, the greatest gain first.
        option: what is recommended without them.
        goal: what to reach; a setting that reaches it is enough if the option was chosen for it. Where the
            recorded run reaches it, no setting is needed.
        may_lose_s: commits of how many seconds may be lost; ``None`` for no setting at all.
        safest_first: all settings of the engine; of those that lose commits of the same time, one may lose
            them in fewer kinds of crash.

    Returns:
        The one that loses least; of those that lose the same time, the one that gains most, or a safer one
        that gains as much. ``None`` if there is none.
    """
    reached = goal is not None and goal.verdict(option.prediction).endswith("reached")
    if may_lose_s is None or (option.stays and reached):
        return None
    allowed = [
        move
        for move in moves
        if move.worthwhile and move.loses_s is not None and move.loses_s <= may_lose_s
        if (goal is not None and goal.verdict(move.prediction).endswith("reached"))
        or (goal is None and _is_as_fast(move, option))
    ]
    least_s = min((move.loses_s or 0.0 for move in allowed), default=0.0)
    losing = [move for move in allowed if (move.loses_s or 0.0) == least_s]
    alike = [move for move in losing if is_rate_unchanged(_rate_ratio(losing[0], move))]
    return min(alike, key=lambda move: safest_first.index(move.setting), default=None)


def _rate_ratio(faster: SettingChange, other: SettingChange) -> Estimate | None:
    return estimates.estimate_ratio(faster.prediction.seed_rates_per_s, other.prediction.seed_rates_per_s)


def _is_as_fast(move: SettingChange, option: PricedPlacement) -> bool:
    """Whether the option is not faster by more than the margin within which predictions count as equal."""
    step = estimates.estimate_ratio(option.prediction.seed_rates_per_s, move.prediction.seed_rates_per_s)
    return option.stays or step is None or step.value <= MARGIN


def _setting_change(chosen: ChosenSetting, answer: Prediction, staying: Prediction) -> SettingChange | None:
    if (compared := _compared_with_staying(answer, staying)) is None:
        return None
    cuts = [
        cut
        for cut in shipped_power_cuts().cuts
        if (cut.engine, cut.durability) == (chosen.engine, chosen.setting.cuts) and not cut.lies
    ]
    return SettingChange(
        loses_s=chosen.loses_s,
        measured=_measured_commit_loss(cuts),
        **_setting_instructions(chosen),
        **compared,
    )


def _setting_instructions(chosen: ChosenSetting) -> dict[str, Any]:
    """Fields of any answer for a setting: what it loses, and the steps there and back."""
    return {
        "setting": chosen.text,
        "loses": chosen.loses,
        "there": chosen.there,
        "back": chosen.back,
        "note": chosen.setting.note,
        "restart": chosen.setting.restart,
        "source": chosen.setting.source,
    }


def _measured_commit_loss(cuts: Sequence[PowerCutCounts]) -> MeasuredCommitLoss | None:
    harmed, made = sum(cut.harmed for cut in cuts), sum(cut.cuts for cut in cuts)
    if made == 0:
        return None
    low, high = share_interval(harmed, made)
    return MeasuredCommitLoss(harmed=harmed, cuts=made, low=low, high=high)


_SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Sizes that are tried, as shares of what is missing to hold all files."""
_STEP = 64 << 20
"""Sizes are whole multiples of it."""
_GIB = 1 << 30
_READ = (Role.DATA, Role.INDEX, Role.SELECTED, Role.UNDO, Role.SYSTEM)
"""Roles whose pages an engine's buffer, or else the page cache, may hold: those of the crate ``work``."""


class MemoryIncrease(AlternativeToMove):
    """More memory, every file where it was recorded."""

    memory_bytes: int
    """Of the machine."""
    buffer_bytes: int | None
    """The engine's own buffer, which takes what is added, and first what no file uses if the engine reads its
    files past the page cache; ``None`` if the page cache takes it."""
    added_bytes: int
    """Memory of the machine, more than recorded; 0 if the buffer takes what is there."""
    holds_all: bool
    """Whether all tables and indexes fit."""


def memory_increases(predictor: Predictor, prices: PriceList, staying: Prediction) -> list[MemoryIncrease]:
    """Sizes of memory up to that of all tables and indexes, ascending; none if reads wait for no device.

    Args:
        predictor: of the recording.
        prices: with that of memory.
        staying: what they are compared with.
    """
    work = predictor.work
    if not work.can_change_memory or not work.memory_bytes or not sum(work.demands.reads.values()):
        return []
    files = sum(size for role, size in work.footprints.items() if role in _READ)
    buffer = work.page_cache.engine_bytes
    missing = files - (buffer or work.page_cache.likely_bytes)
    added = sorted({_rounded_up(share * missing) for share in _SHARES}) if missing > 0 else []
    free = work.page_cache.likely_bytes if buffer and work.page_cache.passed else 0
    scenarios = [
        staying.scenario.changed(
            memory_bytes=work.memory_bytes + max(0, more - free),
            buffer_bytes=buffer + more if buffer else None,
        )
        for more in added
    ]
    price = prices.memory
    return [
        MemoryIncrease(
            memory_bytes=scenario.memory_bytes or 0,
            buffer_bytes=scenario.buffer_bytes,
            added_bytes=max(0, more - free),
            holds_all=more >= missing,
            cost_per_month=None if price is None else price.per_gib_month * max(0, more - free) / _GIB,
            **compared,
        )
        for scenario, answer, more in zip(scenarios, predictor.predict(scenarios), added, strict=True)
        if (compared := _compared_with_staying(answer, staying))
    ]


def memory_as_fast_as_move(moves: Sequence[MemoryIncrease], option: PricedPlacement) -> MemoryIncrease | None:
    """The smallest memory that is at least as fast as an option, within the margin; ``None`` if none is."""
    rate = option.prediction.rate_per_s
    if option.stays or rate is None:
        return None
    rates = [(move, move.prediction.rate_per_s) for move in moves if move.worthwhile]
    return next((move for move, own in rates if own and own.value * MARGIN >= rate.value), None)


def _rounded_up(size: float) -> int:
    return -(-int(size) // _STEP) * _STEP
