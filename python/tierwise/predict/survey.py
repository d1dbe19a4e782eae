"""Every placement of the busy roles over some devices, each with its prediction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict.devices import RECORDED, resolve
from tierwise.predict.prediction import Prediction
from tierwise.predict.predictor import Predictor
from tierwise.predict.ranking import (
    MOST_PLACEMENTS,
    Keep,
    by_load,
    enough,
    first_looks,
    idle_notes,
    placement_of,
    placements_of,
)
from tierwise.predict.scenario import Scenario
from tierwise.predict.together import Unit
from tierwise.predict.uncertainty import uncertainty_of


@dataclass
class Survey:
    """Predictions of all placements.

    Attributes:
        devices: ``recorded``, then the full names of the others.
        placed: roles that are placed, those together that move as one.
        left: roles that stay where they were recorded.
        predictions: by number, see :meth:`number`; ``None`` where there is no answer.
        notes: what was left out, as sentences.
    """

    devices: list[str]
    placed: list[Unit]
    left: list[Role]
    predictions: list[Prediction | None]
    notes: list[str]

    def number(self, placement: Mapping[Role, str]) -> int | None:
        """Number of a placement: a digit for each unit of roles, the index of a device, the last fastest.

        Roles that are not named stay where they were recorded. ``None`` for a placement that is not in the
        survey.
        """
        known = {role for unit in self.placed for role in unit}
        if any(
            (role not in known and device != RECORDED) or device not in self.devices
            for role, device in placement.items()
        ):
            return None
        number = 0
        for unit in self.placed:
            device, *others = {placement.get(role, RECORDED) for role in unit}
            if others:
                return None
            number = number * len(self.devices) + self.devices.index(device)
        return number

    def place(self, closer: Iterable[Prediction]) -> None:
        """Replace predictions by others of the same placements that rest on more seeds."""
        for prediction in closer:
            number = self.number(placement_of(prediction))
            if number is not None:
                self.predictions[number] = prediction


def survey(
    predictor: Predictor,
    devices: Sequence[str],
    keep: Keep = lambda _: True,
    first: Collection[Role] = (),
) -> Survey:
    """Predict every placement over the recorded devices and some others, under one seed.

    The intervals hold the model's error and the reproduction's; the spread over seeds, not known from one, is
    far smaller.

    Args:
        predictor: of the recording. If its replayer remembers, placements that were ranked are not replayed.
        devices: names, as in a scenario.
        keep: which placements to predict; the others have no answer.
        first: roles to place before busier ones, where the placements of all roles are too many.

    Raises:
        TierwiseError: an unknown device, or no device.
    """
    names = [RECORDED, *dict.fromkeys(resolve(name).name for name in devices)]
    if len(names) == 1:
        raise TierwiseError("no device to place files on", "name one or more, as nvme-dc,hdd-7k2")
    idle, loaded = by_load(predictor)
    order = sorted(loaded, key=lambda unit: not set(unit) & set(first))
    placed = order[: max(_units_that_fit(len(names)), 1)]
    fixed = [role for unit in order[len(placed) :] for role in unit]
    roles = {role for unit in placed for role in unit}
    made = Survey(
        devices=names,
        placed=placed,
        left=[role for role in predictor.work.footprints if role not in roles],
        predictions=[None] * len(names) ** len(placed),
        notes=[*idle_notes(idle), *([_fixed(fixed)] if fixed else [])],
    )
    asked = filter(keep, placements_of(placed, names))
    for look in first_looks(predictor, Scenario(), asked, enough(len(made.predictions))):
        doubt = uncertainty_of(look.scenario, predictor.work, predictor.about.stolen_cpu_share)
        made.place([predictor.answers.prediction(look.scenario, [look.outcome], doubt)])
    made.place([predictor.as_recorded])
    return made


def _units_that_fit(devices: int) -> int:
    """How many units of roles have no more than ``MOST_PLACEMENTS`` placements."""
    count = 0
    while devices ** (count + 1) <= MOST_PLACEMENTS:
        count += 1
    return count


def _fixed(roles: Sequence[Role]) -> str:
    return (
        f"more than {MOST_PLACEMENTS:,} placements: {', '.join(roles)} cannot be moved on this page; advice "
        "and prediction on the command line place all roles"
    )
