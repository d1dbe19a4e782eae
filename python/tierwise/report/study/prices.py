"""What a placement costs a month, from the profiles of its devices."""

from __future__ import annotations

from tierwise.advise.costs import Costs
from tierwise.model.errors import TierwiseError
from tierwise.results import RunResult


def usd_per_month(run: RunResult) -> float | None:
    """Price of every device that holds files of a run; ``None`` if one has no price, as a real one.

    Sizes are those of the files that the run left or, of a log, wrote. See ``advise.costs`` for the model.
    """
    costs = Costs({role: proof.written_bytes or 0 for role, proof in run.proof.items()})
    used = [device for device in run.devices if device.roles]
    try:
        # Two devices of one profile are two purchases, so each is priced by itself.
        return sum(
            costs.usd_per_month(dict.fromkeys(device.roles, device.profile or device.name)) for device in used
        )
    except TierwiseError:
        return None
