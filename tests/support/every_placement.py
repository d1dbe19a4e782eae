"""Every placement of the fake recording with its rate and cost, one by one."""

from __future__ import annotations

import functools
import itertools

from support.fake_replay import GB, REQUESTS, predictor, service_us
from tierwise.advise.costs import PlacementCosts
from tierwise.model.placement import Role
from tierwise.predict import RECORDED

FULL = ["ssd-nvme-dc", "ssd-sata-dc", "volume-aws-gp3"]
SIZES = {Role.LOG: GB, Role.DATA: 40 * GB, Role.INDEX: 10 * GB, Role.TEMP: GB}


def rate(placement: dict[Role, str]) -> float:
    devices = {role: placement.get(Role(role), RECORDED) for role in REQUESTS}
    return 1e6 / service_us(devices)


def everything() -> list[dict[Role, str]]:
    """Every placement, by itself."""
    return [
        {role: device for role, device in zip(SIZES, choice, strict=True) if device != RECORDED}
        for choice in itertools.product([RECORDED, *FULL], repeat=len(SIZES))
    ]


@functools.cache
def costs() -> dict[frozenset[tuple[Role, str]], float]:
    """Cost of every placement, with the wear of its devices at the recorded rate."""
    of = PlacementCosts.of(predictor())
    return {frozenset(placement.items()): of.cost_per_month(placement) for placement in everything()}


def cost(placement: dict[Role, str]) -> float:
    return costs()[frozenset(placement.items())]
