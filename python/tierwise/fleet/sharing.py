"""The best set with shared devices for logs: packed, joined at the shared price, and solved again."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Costs, Terms
from tierwise.fleet.knapsack import Knapsack
from tierwise.fleet.packing import Packing, ShareLimits, Together
from tierwise.fleet.records import FleetAdvice, FleetDatabase, FleetSharing, SeparateLog, SharedDevice
from tierwise.model.extras import np

_ROUNDS = 4
"""Sets that are packed at most: each later one spends what the sharing of the one before saved."""
_LEAST_GAIN = 1e-9
"""More gain than the rounding of sums."""
_ROUNDING = 1e-6
"""Money that the solver's tolerance and sums may add to the cost of a set."""


def with_sharing(advice: FleetAdvice, terms: Terms, together: Together, limits: ShareLimits) -> FleetAdvice:
    """The advice, with the logs that it moves packed on shared devices.

    In each round, the new devices of logs in the set are packed, each with all that its database puts on it.
    Then databases outside join these devices at what they cost more with a further log, the greatest gain
    first. The next round has the best set for the budget and all that is saved. Databases that share a device
    keep their option and only get further neighbours, so no round spends more than the budget.

    Args:
        advice: without sharing.
        terms: of payment.
        together: the joint replay.
        limits: of sharing.
    """
    databases, budget = advice.databases, advice.budget_per_month
    packing = Packing(databases, Costs({}, terms), together, limits)
    chosen = [database.chosen for database in databases]
    for left in reversed(range(_ROUNDS)):
        packing.begin(chosen)
        if budget is None:
            break
        _join(packing, databases, chosen, budget)
        better = _best(packing, databases, chosen, budget)
        if not left or _gain(databases, better) <= _gain(databases, chosen) + _LEAST_GAIN:
            break
        chosen = better
    return advice.model_copy(update={"sharing": _record(advice, packing, chosen)})


def _join(packing: Packing, databases: Sequence[FleetDatabase], chosen: list[int], budget: float) -> None:
    """Let databases join packs, the greatest gain first; ``chosen`` then has their options."""
    candidates = sorted(
        (
            (database.importance * (option.gain - database.options[chosen[number]].gain), number, index)
            for number, database in enumerate(databases)
            for index, option in enumerate(database.options)
            if option.log_device
        ),
        key=lambda entry: (-entry[0], entry[1:]),
    )
    shared, left = packing.shared, budget - _cost(packing, databases, chosen)
    for _, number, index in candidates:
        database, now = databases[number], databases[number].options[chosen[number]]
        more = database.importance * (database.options[index].gain - now.gain)
        if more <= _LEAST_GAIN or number in shared:
            continue
        other = (
            database.options[index].cost_per_month
            - packing.separate_cost({number: index})
            - now.cost_per_month
        )
        own_gain = database.importance * now.gain
        if packing.join(number, index, most_cost=left - other, least_gain=own_gain):
            packing.leave_single(number)
            chosen[number] = index
            shared, left = packing.shared, budget - _cost(packing, databases, chosen)


def _best(
    packing: Packing, databases: Sequence[FleetDatabase], chosen: Sequence[int], budget: float
) -> list[int]:
    """The best set for the budget and what is saved, with the databases that share a device as they are."""
    shared = packing.shared
    allowed = [
        [chosen[number]] if number in shared else list(range(len(database.options)))
        for number, database in enumerate(databases)
    ]
    rows = [
        [database.options[index] for index in each] for database, each in zip(databases, allowed, strict=True)
    ]
    gains = [
        database.importance * option.gain
        for database, each in zip(databases, rows, strict=True)
        for option in each
    ]
    knapsack = Knapsack([[option.cost_per_month for option in each] for each in rows])
    best = knapsack.best(np.array(gains), budget + packing.saved_per_month + _ROUNDING)
    return [each[index] for each, index in zip(allowed, best.options, strict=True)]


def _gain(databases: Sequence[FleetDatabase], chosen: Sequence[int]) -> float:
    return sum(
        database.importance * database.options[index].gain
        for database, index in zip(databases, chosen, strict=True)
    )


def _cost(packing: Packing, databases: Sequence[FleetDatabase], chosen: Sequence[int]) -> float:
    paid = sum(
        database.options[index].cost_per_month for database, index in zip(databases, chosen, strict=True)
    )
    return paid - packing.saved_per_month


def _record(advice: FleetAdvice, packing: Packing, chosen: Sequence[int]) -> FleetSharing:
    databases, shared = advice.databases, packing.shared
    lost = sum(
        packing.gain(pack.members, []) - packing.gain(pack.members, pack.figures) for pack in packing.packs
    )
    gain = _gain(databases, chosen) - lost
    before = [move for database in databases for move in database.moves(database.chosen)]
    after = [
        move for database, index in zip(databases, chosen, strict=True) for move in database.moves(index)
    ]
    separate = [
        SeparateLog(
            database=database.name,
            device=load.device,
            reason=packing.reasons.get(number, "no other log on a device of this kind shares it"),
        )
        for number, database in enumerate(databases)
        if (load := packing.log_device(number, chosen[number])) and number not in shared
    ]
    return FleetSharing(
        least_kept=packing.limits.least_kept,
        most_databases=packing.limits.most_databases,
        devices=_devices(packing),
        separate=separate,
        saved_per_month=packing.saved_per_month,
        cost_per_month=_cost(packing, databases, chosen),
        gain=gain,
        gain_share=gain / advice.full_gain if advice.full_gain > 0 else None,
        begun=[move for move in after if move not in before],
        ended=[move for move in before if move not in after],
        replays=packing.replays,
    )


def _devices(packing: Packing) -> list[SharedDevice]:
    counts: dict[str, int] = {}
    devices = []
    for pack in packing.packs:
        if len(pack.members) < 2:
            continue
        counts[pack.device] = counts.get(pack.device, 0) + 1
        cost, separate = packing.cost(pack.members), packing.separate_cost(pack.members)
        devices.append(
            SharedDevice(
                name=f"{pack.device}#{counts[pack.device]}",
                databases=pack.figures,
                size_bytes=packing.size_bytes(pack.members),
                cost_per_month=cost,
                separate_cost_per_month=separate,
                saved_per_month=separate - cost,
            )
        )
    return devices
