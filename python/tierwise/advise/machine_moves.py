"""A larger machine instead of a move: its gain, alone and with the recommended placement, and its price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.advise.option import Option, is_told
from tierwise.device_models.instances import Instance, larger, limits_only
from tierwise.predict import Prediction, Predictor, Scenario
from tierwise.predict.machine import network_volumes
from tierwise.predict.ranking import asking
from tierwise.results.measurements import Record


class MachineMove(Record):
    """One other machine, every file where it was recorded."""

    instance: str
    """Its name, such as ``m6i.xlarge``."""
    vcpus: int | None
    """Processors that the operating system sees."""
    memory_gib: float | None
    """Memory, in GiB."""
    prediction: Prediction
    """With its limits, its cores and, where the recording tells what that changes, its memory."""
    gain_per_s: float
    """More transactions a second than on the machine of the database."""
    cost_per_month: float | None
    """Its rent less that of the machine of the database; ``None`` where one has no price in the currency."""
    with_moves: Prediction | None
    """With the recommended placement; ``None`` if that is to stay."""
    worthwhile: bool
    """Whether its gain alone can be told from none, and the median latency gets no longer."""


def machine_of(instances: Sequence[Instance], recorded_on: Mapping[str, str]) -> Scenario:
    """The machine of every placement: the limits of the first instance, with the recorded cores and memory.

    Args:
        instances: the machine of the database, then others; none for no limits.
        recorded_on: role, or ``all``, -> what the recorded device is.
    """
    if not instances:
        return Scenario()
    return Scenario(instance=limits_only(instances[0]), recorded_volumes=network_volumes(recorded_on))


def machine_moves(
    predictor: Predictor,
    instances: Sequence[Instance],
    staying: Prediction,
    option: Option,
    currency: str,
) -> list[MachineMove]:
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
    machines = [other for other in others or larger(now) if other.name != now.name]
    alone = [staying.scenario.model_copy(update={"instance": machine}) for machine in machines]
    moved: list[Scenario] = [] if option.stays else [asking(scenario, option.placement) for scenario in alone]
    answers = predictor.predict([*alone, *moved])
    both: Sequence[Prediction | None] = answers[len(alone) :] or [None] * len(alone)
    return [
        MachineMove(
            instance=machine.name,
            vcpus=machine.vcpus,
            memory_gib=machine.memory_gib,
            prediction=answer,
            gain_per_s=answer.rate_per_s.value - staying.rate_per_s.value,
            cost_per_month=rent_difference(now, machine, currency),
            with_moves=beside if beside and beside.rate_per_s else None,
            worthwhile=is_told(answer, staying),
        )
        for machine, answer, beside in zip(machines, answers, both, strict=False)
        if answer.rate_per_s and staying.rate_per_s
    ]


def rent_difference(now: Instance, other: Instance, currency: str) -> float | None:
    """Rent of another machine less that of the present one, a month; ``None`` if one is not known."""
    if now.per_month is None or other.per_month is None or {now.currency, other.currency} != {currency}:
        return None
    return other.per_month - now.per_month


def machine_notes(instances: Sequence[Instance], cores: int) -> list[str]:
    """What the limits of the machine are assumed to be about, as sentences; none without a machine.

    Args:
        instances: the machine of the database, then others.
        cores: recorded ones.
    """
    if not instances or instances[0].vcpus in (None, cores):
        return []
    name = instances[0].name
    return [
        f"{name} has {instances[0].vcpus} processors and the recorded machine {cores}: placements have the "
        f"limits of {name}, and the recorded cores and memory; tierwise predict --instance has all of {name}"
    ]
