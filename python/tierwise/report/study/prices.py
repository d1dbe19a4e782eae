"""What a placement costs a month, from the profiles of its devices."""

from __future__ import annotations

from tierwise.advise.costs import Costs
from tierwise.model.errors import TierwiseError
from tierwise.results import RunResult


def cost_per_month(run: RunResult) -> float | None:
    """US dollars a month for all devices that hold files of a run; ``None`` if one has no price.

    Two devices of one profile are two purchases, so each is priced by itself. Sizes are those of the files
    that the run left or, of a log, of what it wrote. ``advise.costs`` has the model.
    """
    costs = Costs({role: proof.written_bytes or 0 for role, proof in run.proof.items()})
    used = {device.name: device for device in run.devices if device.roles}
    prices = []
    for device in used.values():
        if device.profile is None:
            return None
        try:
            prices.append(costs.cost_per_month(dict.fromkeys(device.roles, device.profile)))
        except TierwiseError:
            return None
    return sum(prices)
