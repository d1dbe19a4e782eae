"""What the page takes from ``advise``: the chosen placement, costs and wear. All else reads it from here."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tierwise.advise import Advice, Option, Terms, Wear
from tierwise.advise.costs import Costs
from tierwise.advise.endurance import wear
from tierwise.advise.option import MARGIN
from tierwise.model.money import SYMBOLS
from tierwise.model.roles import Role
from tierwise.predict import RECORDED, Prediction, Predictor
from tierwise.predict.ranking import placement_of
from tierwise.predict.survey import Survey, survey


@dataclass(frozen=True)
class Subject:
    """An advice with all placements behind it.

    Attributes:
        advice: the advice.
        survey: every placement, those of the advice under all seeds.
        recording: folder of the recording, as the user wrote it.
        costs: of placements, under the terms of the advice.
        fresh: whether devices are in factory state.
    """

    advice: Advice
    survey: Survey
    recording: Path
    costs: Costs
    fresh: bool = False

    @property
    def currency(self) -> str:
        """Sign of the prices' currency, or its code where it has none."""
        return SYMBOLS.get(self.costs.currency, self.costs.currency)

    def cost_per_month(self, prediction: Prediction) -> float:
        """What a placement costs a month more than is paid now, with wear; below 0 if it saves money."""
        return self.costs.bill_of(prediction).cost_per_month

    @property
    def now_per_month(self) -> float | None:
        """Rent of the recorded volumes that a placement can end; ``None`` if not known."""
        return self.costs.now_per_month

    @property
    def _option(self) -> Option | None:
        return self.advice.reaching or self.advice.best

    @property
    def bends_to_goal(self) -> bool:
        """Whether another placement would be advised without the goal."""
        best, reaching = self.advice.best, self.advice.reaching
        return bool(best and reaching and best.placement != reaching.placement)

    @property
    def chosen(self) -> Prediction:
        """The prediction of the advised placement: what comes closest to the goal, else the best."""
        return self._option.prediction if self._option else self.advice.recorded

    @property
    def taken_along(self) -> dict[Role, str]:
        """Idle roles that have to move too, so that the rent of the recorded volume ends."""
        return self._option.taken_along if self._option else {}

    @property
    def placement(self) -> dict[Role, str]:
        """The roles that the advice moves, to their new devices."""
        return placement_of(self.chosen)

    @property
    def moves(self) -> dict[Role, str]:
        """All that has to move: the placement, and what is taken along."""
        return self.placement | self.taken_along

    @property
    def steps(self) -> list[tuple[Role, str, Prediction, float]]:
        """The ladder: role, device, the prediction after the step, and what the step costs a month."""
        return [(step.role, step.device, step.prediction, step.cost_per_month) for step in self.advice.ladder]

    def wear(self, prediction: Prediction) -> list[Wear]:
        """The wear of each new device of a prediction."""
        return wear(prediction, self.survey.devices)

    def price(self, device: str) -> tuple[float, float]:
        """Cost of a month of a device with the smallest role on it, and with all; (0, 0) where recorded."""
        if device == RECORDED or not self.survey.roles:
            return 0.0, 0.0
        new = [self.costs.bill({role: device}).new_per_month for role in self.survey.roles]
        return min(new), self.costs.bill(dict.fromkeys(self.survey.roles, device)).new_per_month

    @property
    def margin(self) -> float:
        """Ratio of two predicted rates up to which they count as equal."""
        return MARGIN

    @property
    def command(self) -> str:
        """The command that predicts the recorded run, without a placement, quoted for a shell."""
        parts = ["tierwise", "predict", str(self.recording), *(["--fresh"] if self.fresh else [])]
        return " ".join(shlex.quote(part) for part in parts)


def subject(
    predictor: Predictor, advice: Advice, terms: Terms, recording: Path, fresh: bool = False
) -> Subject:
    """Survey the placements around an advice; the budget leaves none of them out, too small a device does.

    Args:
        predictor: of the recording.
        advice: the advice.
        terms: of payment, those of the advice.
        recording: folder of the recording, for commands to type.
        fresh: whether devices are in factory state.
    """
    costs = Costs.of(predictor, terms)
    options = (advice.best, advice.fastest, advice.cheaper, advice.reaching)
    advised = next((one for one in (advice.reaching, advice.best) if one), None)
    found = survey(predictor, advice.devices, keep=costs.fits, first=advised.placement if advised else ())
    moves = [move.prediction for move in (*advice.moves, *advice.ladder)]
    found.place([*moves, *(option.prediction for option in options if option)])
    return Subject(advice, found, recording, costs, fresh)
