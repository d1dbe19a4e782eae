"""What a placement costs a month, from the profiles of its devices."""

from __future__ import annotations

from collections.abc import Collection

from tierwise.advise.costs import Costs
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.report.study.moves import Moved
from tierwise.results import RunResult


def cost_per_month(run: RunResult, among: Collection[str] | None = None) -> float | None:
    """US dollars a month for devices that hold files of a run; ``None`` if one has no price.

    Two devices of one profile are two purchases, so each is priced by itself. Sizes are those of the files
    that the run left or, of a log, of what it wrote. ``advise.costs`` has the model.

    Args:
        run: with its devices.
        among: names of those that count; all if not given.
    """
    costs = Costs({role: proof.written_bytes or 0 for role, proof in run.proof.items()})
    used = {
        device.name: device
        for device in run.devices
        if device.roles and (among is None or device.name in among)
    }
    prices = []
    for device in used.values():
        if device.profile is None:
            return None
        try:
            prices.append(costs.cost_per_month(dict.fromkeys(device.roles, device.profile)))
        except TierwiseError:
            return None
    return sum(prices)


def is_in_memory(run: RunResult, moved: Moved) -> bool:
    """Whether a placement moves files to memory, temporary ones aside: a power cut loses them."""
    memory = {device.name for device in run.devices if device.kind == "ram"}
    return any(device in memory and set(roles) - {Role.TEMP} for device, roles in moved.items())
