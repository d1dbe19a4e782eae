"""What an advice is asked for, as the commands that give one share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from tierwise.advise.advice import Advice, advise
from tierwise.advise.costs import Terms
from tierwise.advise.goal import Goal
from tierwise.advise.growing import parse_factor
from tierwise.device_models.instances import Instance, find_instances
from tierwise.model.names import names_in
from tierwise.model.units import parse_duration_s, parse_monthly
from tierwise.predict import Predictor


@dataclass(frozen=True)
class AdviceOptions:
    """The options of an advice.

    Attributes:
        devices: names of the candidate devices.
        budget_per_month: most that a placement may cost, in the currency of the prices.
        goal: what to reach.
        terms: of payment.
        fresh: whether new devices are in their factory state.
        may_lose_s: commits of how many seconds a crash may lose, if a setting may be recommended for it.
        instances: the machine of the database, then others to compare it with.
        grow: a factor by which data and load may grow.
    """

    devices: Sequence[str]
    budget_per_month: float | None = None
    goal: Goal | None = None
    terms: Terms = field(default_factory=Terms)
    fresh: bool = False
    may_lose_s: float | None = None
    instances: Sequence[Instance] = ()
    grow: float | None = None

    @classmethod
    def parse(
        cls,
        devices: str,
        budget: str | None,
        goal: str | None,
        terms: Terms,
        *,
        fresh: bool,
        may_lose: str | None = None,
        instances: Sequence[str] = (),
        grow: str | None = None,
    ) -> Self:
        """Read the options of a command line: ``nvme-dc,gp3``, ``50/month``, ``p99=5ms`` and ``1s``.

        Raises:
            TierwiseError: naming the option.
        """
        return cls(
            devices=names_in(devices),
            budget_per_month=None
            if budget is None
            else parse_monthly(budget, "--budget", terms.prices.currency),
            goal=None if goal is None else Goal.parse(goal),
            terms=terms,
            fresh=fresh,
            may_lose_s=None if may_lose is None else parse_duration_s(may_lose, "--may-lose"),
            instances=find_instances(instances),
            grow=None if grow is None else parse_factor(grow),
        )

    def advise(self, predictor: Predictor) -> Advice:
        """The advice for a recording; see :func:`tierwise.advise.advise`."""
        return advise(
            predictor,
            self.devices,
            self.budget_per_month,
            self.goal,
            self.terms,
            self.may_lose_s,
            instances=self.instances,
            grow=self.grow,
        )
