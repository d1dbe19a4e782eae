"""A placement with its prediction, its price, the wear of its devices, and when files may fill them.

The goal of a user, and whether a prediction reaches it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from tierwise.advise.costs import DeviceBill, PlacementCosts
from tierwise.advise.wear import DeviceWear, device_wear, predicted_write_rates
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.units import parse_duration_s
from tierwise.predict import Estimate, Prediction, estimates, resolve_device
from tierwise.predict.ranking import RankedPlacement, placement_of_prediction
from tierwise.predict.role_space import RoleSpace
from tierwise.predict.simulator_output import CHANCE
from tierwise.results.measurements import StrictModel

MARGIN = 1.15
"""Ratio of two predicted rates up to which they are taken as equal, whatever their intervals. Predictions of
loads never seen before err by nearly as much in the median (docs/evidence/accuracy.md)."""

LEAST_SAVING_PER_MONTH = 1.0
"""Judgement: a smaller saving does not pay for the time that a move takes, if nothing gets faster."""


class PricedPlacement(StrictModel):
    """A placement, its prediction and its price; to leave the files where they are is one."""

    placement: dict[Role, str]
    """Of the roles that are not where they were recorded."""
    prediction: Prediction
    cost_per_month: float
    """More than is paid now, in the currency of the advice; below 0 if it saves money. Drives wear at the
    recorded rate of writes."""
    cost_at_predicted_rate_per_month: float
    """The same if the load fills the predicted rate, so that drives wear sooner."""
    new_per_month: float
    """Of the devices that it adds; a drive is bought again when it is worn out."""
    bills: list[DeviceBill]
    """The parts of that, for each new device."""
    credit_per_month: float
    """Rent of the recorded volumes that it gives up."""
    taken_along: dict[Role, str]
    """Roles with almost no I/O that move too, so that a recorded volume can be given up."""
    size_bytes: dict[str, int]
    """Bytes of files on each new device."""
    wear: list[DeviceWear]

    @property
    def stays(self) -> bool:
        """Whether it leaves every file where it is."""
        return not self.placement

    def step_to(self, other: PricedPlacement) -> Estimate | None:
        """Rate of another option over that of this one, seed by seed, so that common errors cancel."""
        return estimates.estimate_ratio(other.prediction.seed_rates_per_s, self.prediction.seed_rates_per_s)

    def as_good_as(self, other: PricedPlacement) -> bool:
        """Whether it cannot be told from a faster one: by chance of the seeds, or by less than ``MARGIN``.

        To stay is as good as any placement whose interval includes no change: the error of the model, which
        cancels between two predictions, does not cancel between a prediction and what was recorded.
        """
        return (self.stays and not other.prediction.faster) or is_rate_unchanged(self.step_to(other))


def is_rate_unchanged(step: Estimate | None) -> bool:
    """Whether a ratio of rates, seed by seed, cannot be told from 1."""
    return step is None or step.low <= 1 or step.value <= MARGIN


def is_sure_gain(after: Prediction, staying: Prediction) -> bool:
    """Whether a placement can be told from staying as one is, and may be recommended for its rate."""
    step = estimates.estimate_ratio(
        after.seed_rates_per_s, staying.seed_rates_per_s[: len(after.seed_rates_per_s)]
    )
    return after.faster and not is_rate_unchanged(step) and not lengthens_median_latency(after, staying)


def lengthens_median_latency(after: Prediction, before: Prediction) -> bool:
    """Whether the median latency gets longer by more than chance; work done once has only its own time."""
    if after.once or after.p50_us is None or before.p50_us is None:
        return False
    return after.p50_us.value > before.p50_us.value * (1 + CHANCE)


def highest_worthwhile_cost(offers: Iterable[tuple[float, float]], rent_per_month: float | None) -> float:
    """The cost of the dearest offer that is worth its price: as much work from more machines costs no less.

    *n* machines with their storage do at most *n* times the work at *n* times the rent, so *g* times the work
    of a cheaper offer is worth *g* - 1 times the rent of that one's machine and storage. Assumption: the work
    can be parted; else more machines gain less, and nothing but the offer does.

    Args:
        offers: cost a month of all devices and rate of each, to stay among them.
        rent_per_month: of a machine; without it, every price is worth paying.
    """
    if rent_per_month is None:
        return math.inf
    kept: tuple[float, float] | None = None
    for cost, rate in sorted(offers):
        if kept is None:
            kept = cost, rate
        gain = rate / kept[1] if kept[1] > 0 else math.inf
        if rate > kept[1] and cost - kept[0] <= (gain - 1) * (rent_per_month + max(kept[0], 0.0)):
            kept = cost, rate
    return kept[0] if kept else math.inf


def rent_unknown_note(currency: str) -> str:
    """That no rent bounds what a gain may cost, as a sentence without its full stop."""
    return f"no rent of a machine is known in {currency}, so no gain is taken as too dear: give --budget"


def monthly_cost_limits(
    offers: Iterable[tuple[float, float]], rent_per_month: float | None
) -> Iterator[float]:
    """Costs a month up to which to look for an offer that helps, in this order.

    First that of :func:`highest_worthwhile_cost`. If nothing up to it helps, that of the offers without the
    cheapest, and so on: where help is worth no price, the cheapest help is still an answer.

    Args:
        offers: as of :func:`highest_worthwhile_cost`.
        rent_per_month: likewise.
    """
    rising = sorted(offers)
    return (highest_worthwhile_cost(rising[number:], rent_per_month) for number in range(len(rising)))


def priced_placement(
    prediction: Prediction, costs: PlacementCosts, devices: Sequence[str]
) -> PricedPlacement:
    """The option of a prediction.

    Args:
        prediction: of a placement.
        costs: of placements.
        devices: full names of all candidates.
    """
    placement = placement_of_prediction(prediction)
    bill = costs.bill(placement)
    return PricedPlacement(
        placement=placement,
        prediction=prediction,
        cost_per_month=bill.cost_per_month,
        cost_at_predicted_rate_per_month=costs.bill(
            placement, predicted_write_rates(prediction)
        ).cost_per_month,
        new_per_month=bill.new_per_month,
        bills=list(bill.devices),
        credit_per_month=bill.credit_per_month,
        taken_along=dict(bill.taken_along),
        size_bytes=costs.size_bytes({**placement, **bill.taken_along}),
        wear=device_wear(prediction, devices, costs.written),
    )


_GIB = 1 << 30


class UnboundedFiles(StrictModel):
    """Files of a role that may grow until their new device is full."""

    role: Role
    device: str
    when: str
    """As ``if archiving stops``."""
    free_bytes: int
    """Of the device, beside what it must hold."""
    full_after_s: float
    """At the predicted rate of work."""


def unbounded_files(option: PricedPlacement, spaces: Mapping[Role, RoleSpace]) -> list[UnboundedFiles]:
    """Each role of a placement whose files may grow without limit.

    Args:
        option: the placement, with its predicted rate.
        spaces: of each role.
    """
    speedup = option.prediction.speedup
    faster = speedup.value if speedup else 1.0
    filling = []
    for role, device in {**option.placement, **option.taken_along}.items():
        space = spaces.get(role)
        if space is None or not space.unlimited or space.grows_bytes_per_s <= 0:
            continue
        free_bytes = max(_usable_bytes(option, device) - option.size_bytes[device], 0)
        free_bytes += space.size_bytes - space.now_bytes
        filling.append(
            UnboundedFiles(
                role=role,
                device=device,
                when=space.unlimited,
                free_bytes=free_bytes,
                full_after_s=free_bytes / (space.grows_bytes_per_s * faster),
            )
        )
    return filling


def _usable_bytes(option: PricedPlacement, device: str) -> int:
    """What files can have of a volume that is billed by size, or of an array; the capacity of others."""
    profile = resolve_device(device).profile
    parts = [part for bill in option.bills if bill.device == device for part in bill.parts]
    rented = next((part.quantity for part in parts if part.what == "size"), None)
    if rented is None:
        return profile.capacity_bytes
    members_bytes = int(profile.fields.get("members", 1)) * (profile.member or profile).capacity_bytes
    return int(rented * _GIB * profile.capacity_bytes / members_bytes)


GoalFigure = Literal["tps", "p50", "p95", "p99"]
GoalVerdict = Literal["missed", "likely missed", "likely reached", "reached"]
VERDICTS: tuple[GoalVerdict, ...] = ("missed", "likely missed", "likely reached", "reached")
"""From no part of the interval at or beyond the goal, over its best end and the best guess, to all of it."""
_PATTERN = re.compile(r"(tps|p50|p95|p99)=(\d+(?:\.\d+)?)\s*([a-zµ]+)?")
_FIELDS: dict[GoalFigure, str] = {"tps": "rate_per_s", "p50": "p50_us", "p95": "p95_us", "p99": "p99_us"}
_NEAR = 0.9
_FIX = "write for example tps=2000 or p99=5ms"


class Goal(StrictModel):
    """A rate to reach, or a latency to keep below."""

    what: GoalFigure
    bound: float
    """Transactions a second, or µs."""

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read ``tps=2000`` or ``p99=5ms``.

        Raises:
            TierwiseError: anything else.
        """
        match = _PATTERN.fullmatch(text.strip())
        if not match:
            raise TierwiseError(f"--goal: {text!r} is no goal", _FIX)
        what, number, unit = match.groups()
        if (what == "tps") == (unit is not None) or float(number) <= 0:
            raise TierwiseError(f"--goal: {text!r} has no unit that fits, or is 0", _FIX)
        bound = float(number) if unit is None else 1e6 * parse_duration_s(f"{number}{unit}", "--goal")
        return cls.model_validate({"what": what, "bound": bound})

    def figure(self, prediction: Prediction) -> Estimate | None:
        """The figure of a prediction that the goal is about."""
        figure: Estimate | None = getattr(prediction, _FIELDS[self.what])
        return figure

    def near(self, ranked: RankedPlacement) -> bool:
        """Whether a first look, under one seed, came within a tenth of it."""
        if self.what == "tps":
            return ranked.rate_per_s >= _NEAR * self.bound
        return self.distance(ranked) <= self.bound / _NEAR

    def distance(self, ranked: RankedPlacement) -> float:
        """A figure of a first look that is smaller, the better it serves the goal."""
        figure: float = getattr(ranked, _FIELDS[self.what])
        return -figure if self.what == "tps" else figure

    def verdict(self, prediction: Prediction) -> GoalVerdict:
        """Whether a prediction reaches it, by where the goal lies in the interval and from the best guess."""
        figure = self.figure(prediction)
        if figure is None:
            return "missed"
        if self.what == "tps":
            reached = [end >= self.bound for end in (figure.low, figure.value, figure.high)]
        else:
            reached = [end <= self.bound for end in (figure.high, figure.value, figure.low)]
        return VERDICTS[sum(reached)]
