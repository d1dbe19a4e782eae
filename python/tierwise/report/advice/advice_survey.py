"""What the page takes from ``advise``: the decision, costs and wear. All else reads it from here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tierwise.advise import Advice, DeviceWear, PaymentTerms, PricedPlacement
from tierwise.advise.alternatives import current_machine
from tierwise.advise.costs import Bill, PlacementCosts
from tierwise.advise.priced_placement import is_sure_gain
from tierwise.advise.wear import device_wear
from tierwise.device_models.instances import CloudInstance
from tierwise.model import numbers
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Prediction, Predictor, Scenario
from tierwise.predict.ranking import PlacementSurvey, placement_of_prediction, survey_placements
from tierwise.predict.scenario_machine import scenario_on_instance


@dataclass(frozen=True)
class AdviceSurvey:
    """An advice with all placements behind it.

    Attributes:
        advice: the advice.
        survey: every placement, those of the advice under all seeds.
        recording: folder of the recording, as the user wrote it.
        costs: of placements, under the terms of the advice.
        fresh: whether devices are in factory state.
        names: file of the names of tables, if the recording has none.
        machine: options that make a prediction behind the limits of the advice's machine.
    """

    advice: Advice
    survey: PlacementSurvey
    recording: Path
    costs: PlacementCosts
    fresh: bool = False
    names: Path | None = None
    machine: Sequence[str] = ()

    @property
    def currency(self) -> str:
        """Sign of the prices' currency, or its code where it has none."""
        return numbers.currency_symbol(self.costs.currency)

    def bill(self, prediction: Prediction) -> Bill:
        """What a placement costs a month in its parts, with wear at the recorded rate."""
        return self.costs.bill(placement_of_prediction(prediction))

    def cost_per_month(self, prediction: Prediction) -> float:
        """What a placement costs a month more than is paid now; below 0 if it saves money."""
        return self.bill(prediction).cost_per_month

    @property
    def option(self) -> PricedPlacement:
        """The option that the advice decided for."""
        return self.advice.decision.option

    @property
    def placement(self) -> dict[Role, str]:
        """The roles that the advice moves, to their new devices."""
        return self.option.placement

    @property
    def moves(self) -> dict[Role, str]:
        """All that has to move: the placement, and what is taken along."""
        return self.placement | self.option.taken_along

    def wear(self, prediction: Prediction) -> list[DeviceWear]:
        """The wear of each new device of a prediction."""
        return device_wear(prediction, self.survey.devices, self.costs.written)

    def price(self, device: str) -> tuple[float, float]:
        """Cost of a month of a device with the smallest role on it, and with all; (0, 0) where recorded."""
        placed = self.survey.placed
        if device == RECORDED or not placed:
            return 0.0, 0.0
        new = [self.costs.bill(dict.fromkeys(unit, device)).new_per_month for unit in placed]
        every = dict.fromkeys((role for unit in placed for role in unit), device)
        return min(new), self.costs.bill(every).new_per_month

    def is_sure_gain(self, prediction: Prediction) -> bool:
        """Whether a placement can be told from staying, lengthens no median latency and, if the advice does
        not either, keeps nothing in memory that must last.
        """
        return is_sure_gain(prediction, self.advice.recorded)

    @property
    def command(self) -> str:
        """The command that predicts the recorded run, without a placement, quoted for a shell."""
        parts = ["tierwise", "predict", str(self.recording), *(["--fresh"] if self.fresh else [])]
        parts += self.machine
        return " ".join(shlex.quote(part) for part in parts)


def survey_advice(
    predictor: Predictor,
    advice: Advice,
    terms: PaymentTerms,
    recording: Path,
    fresh: bool = False,
    names: Path | None = None,
    *,
    instance: str = "",
) -> AdviceSurvey:
    """Survey the placements around an advice; the budget leaves none of them out, too small a device does.

    Args:
        predictor: of the recording.
        advice: the advice.
        terms: of payment, those of the advice.
        recording: folder of the recording, for commands to type.
        fresh: whether devices are in factory state.
        names: file of the names of tables, if the recording has none.
        instance: name or file of the advice's machine.
    """
    costs = PlacementCosts.of(predictor, terms)
    decision = advice.decision
    options = [
        decision.option,
        *(option for option in (advice.best, advice.fastest, advice.simpler, advice.reaching) if option),
    ]
    machine = None
    if advice.instance is not None:
        machine = current_machine([advice.instance], terms.recorded_on)
    simulated = survey_placements(
        predictor, advice.devices, keep=costs.fits, first=decision.option.placement, machine=machine
    )
    moves = [move.prediction for move in (*advice.moves, *advice.ladder)]
    simulated.place([advice.recorded, *moves, *(option.prediction for option in options)])
    typed = [] if advice.instance is None else _typed(advice.instance, instance, predictor, terms)
    return AdviceSurvey(advice, simulated, recording, costs, fresh, names, typed)


def _typed(machine: CloudInstance, name: str, predictor: Predictor, terms: PaymentTerms) -> list[str]:
    """Options of ``predict`` for the machine's limits with the recorded cores and memory."""
    options = ["--instance", name or machine.name]
    if terms.recorded_on:
        places = ",".join(f"{role}={device}" for role, device in terms.recorded_on.items())
        options += ["--recorded-on", places]
    replaced = scenario_on_instance(Scenario(instance=machine), predictor.work)
    if replaced.cores is not None:
        options += ["--cores", str(predictor.work.cores)]
    if replaced.memory_bytes is not None:
        options += ["--memory", str(predictor.run.memory_bytes)]
    return options
