"""What the page takes from ``advise``: the chosen placement, costs and wear. All else reads it from here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tierwise.advise import Advice, Wear
from tierwise.advise.costs import Costs
from tierwise.advise.endurance import wear
from tierwise.advise.terms import Terms
from tierwise.model.money import SYMBOLS
from tierwise.model.roles import Role
from tierwise.predict import RECORDED, Prediction, Predictor
from tierwise.predict.survey import Survey, survey

_GB = 10**9
_MOST_GB = 1000


@dataclass(frozen=True)
class Subject:
    """An advice with all placements behind it.

    Attributes:
        advice: the advice.
        survey: every placement, those of the advice under all seeds.
        costs: of placements.
        recording: folder of the recording, as the user wrote it.
        fresh: whether devices are in factory state.
    """

    advice: Advice
    survey: Survey
    costs: Costs
    recording: Path
    fresh: bool = False

    @property
    def currency(self) -> str:
        """Symbol of the prices' currency."""
        return SYMBOLS.get(self.costs.currency, self.costs.currency)

    def cost_per_month(self, placement: Mapping[Role, str]) -> float:
        """What a placement costs a month more than what is paid now, in the currency."""
        return self.costs.cost_per_month(placement)

    @property
    def chosen(self) -> Prediction:
        """The prediction of the advised placement: what reaches the goal, else the best, else as recorded."""
        option = self.advice.reaching or self.advice.best
        return option.prediction if option else self.advice.recorded

    @property
    def placement(self) -> dict[Role, str]:
        """The roles that the advice moves, to their new devices."""
        return moved_by(self.chosen)

    @property
    def steps(self) -> list[tuple[Role, str, Prediction, float]]:
        """The ladder: role, device, the prediction after the step, and what the step costs a month."""
        return [(step.role, step.device, step.prediction, step.cost_per_month) for step in self.advice.ladder]

    @property
    def too_dear(self) -> list[str]:
        """Candidate devices that exceed the budget with any role on them."""
        return [one.device for one in self.advice.left_out if one.least_cost_per_month is not None]

    def wear(self, prediction: Prediction) -> list[Wear]:
        """The wear of each new device of a prediction."""
        return wear(prediction, self.survey.devices)

    def price(self, device: str) -> tuple[float, float]:
        """Fixed price of a month, and the price of a month for each 10^9 bytes; (0, 0) where recorded."""
        if device == RECORDED:
            return 0.0, 0.0
        least, more = (self.costs.of_device(device, size) for size in (0, _MOST_GB * _GB))
        return least, (more - least) / _MOST_GB

    @property
    def command(self) -> str:
        """The command that predicts the recorded run, without a placement, quoted for a shell."""
        parts = ["tierwise", "predict", str(self.recording), *(["--fresh"] if self.fresh else [])]
        return " ".join(shlex.quote(part) for part in parts)


def subject(
    predictor: Predictor, advice: Advice, terms: Terms, recording: Path, fresh: bool = False
) -> Subject:
    """Survey the placements around an advice; the budget leaves none of them out.

    Args:
        predictor: of the recording.
        advice: the advice.
        terms: of payment, those of the advice.
        recording: folder of the recording, for commands to type.
        fresh: whether devices are in factory state.
    """
    found = survey(predictor, advice.devices)
    options = [option.prediction for option in (advice.best, advice.reaching) if option]
    moves = [move.prediction for move in (*advice.moves, *advice.ladder)]
    found.place([*moves, *options])
    return Subject(advice, found, Costs.of(predictor, terms), recording, fresh)


def moved_by(prediction: Prediction) -> dict[Role, str]:
    """The roles that a prediction moves, to their new devices."""
    return {
        Role(role): device for role, device in prediction.scenario.placement.items() if device != RECORDED
    }
