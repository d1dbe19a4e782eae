"""A placement with its prediction, its price and the wear of its devices."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise.costs import Costs
from tierwise.advise.endurance import Wear, wear
from tierwise.model.roles import Role
from tierwise.predict import Estimate, Prediction, estimates
from tierwise.predict.ranking import placement_of
from tierwise.results.measurements import Record

MARGIN = 1.15
"""Ratio of two predicted rates up to which they are taken as equal, whatever their intervals: the median
error of predictions in the prospective round (docs/evidence/accuracy.md)."""


class Option(Record):
    """A placement, its prediction and its price."""

    placement: dict[Role, str]
    """Of the roles that are not where they were recorded."""
    prediction: Prediction
    cost_per_month: float
    """More than is paid now, in the currency of the advice; below 0 if it saves money."""
    new_per_month: float
    """Of the devices that it adds; a purchased one is bought again when it is worn out."""
    credit_per_month: float
    """Rent of the recorded volumes that it gives up."""
    taken_along: dict[Role, str]
    """Roles with almost no I/O that move too, so that a recorded volume can be given up."""
    size_bytes: dict[str, int]
    """Bytes of files on each new device."""
    wear: list[Wear]

    def step_to(self, other: Option) -> Estimate | None:
        """Rate of another option over that of this one, seed by seed, so that common errors cancel."""
        return estimates.ratio(other.prediction.seed_rates_per_s, self.prediction.seed_rates_per_s)

    def as_good_as(self, other: Option) -> bool:
        """Whether it cannot be told from a faster one: by chance of the seeds, or by less than ``MARGIN``."""
        step = self.step_to(other)
        return step is not None and (step.low <= 1 or step.value <= MARGIN)


def option_of(prediction: Prediction, costs: Costs, devices: Sequence[str]) -> Option:
    """The option of a prediction.

    Args:
        prediction: of a placement.
        costs: of placements.
        devices: full names of all candidates.
    """
    placement = placement_of(prediction)
    bill = costs.bill_of(prediction)
    return Option(
        placement=placement,
        prediction=prediction,
        cost_per_month=bill.cost_per_month,
        new_per_month=bill.new_per_month,
        credit_per_month=bill.credit_per_month,
        taken_along=dict(bill.taken_along),
        size_bytes=costs.size_bytes({**placement, **bill.taken_along}),
        wear=wear(prediction, devices),
    )
