"""Bars of ranking: 4,096 placements of a recording within 5 s, in the order of a longer look.

``python benchmarks/ranking.py [RECORDING...]``; by default the recordings that ship. Four roles are placed on
eight devices in every way and replayed like ``tierwise predict --devices``: under one seed, for few
transactions. Some placements are replayed again like a prediction, for longer and under three seeds. Two bars
follow: the share of pairs that differ by more than 5 % and are in the same order in both replays, and how far
the best of the first ten falls short of the best of all. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tierwise.predict import Scenario
from tierwise.predict.ranking import MOST_PLACEMENTS, SPAN_S, first_round_transactions
from tierwise.predict.replayer import Replayer, SimulationRequest
from tierwise.predict.simulator_output import SimulationOutcome

TIME_BAR_S = 5.0
ORDER_BAR = 0.95
ROLES = 4
DEVICES = (
    "hdd-7k2",
    "hdd-10k-sas",
    "array-raid5-8x-hdd-10k-sas",
    "ssd-sata-consumer",
    "ssd-pcie-slc-2008",
    "ssd-nvme-consumer",
    "ssd-nvme-dc",
    "volume-aws-gp3",
)
LOOKED_AT_LONGER = 60
SEEDS = 3
APART = 1.05
FIRST = 10
EXAMPLES = Path(__file__).parents[1] / "examples/recordings"


def main() -> int:
    """Replay, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recordings", type=Path, nargs="*", default=sorted(EXAMPLES.glob("*/")))
    missed = [not _judged(path) for path in parser.parse_args().recordings]
    return int(any(missed))


def _judged(path: Path) -> bool:
    begin_s = time.perf_counter()
    replayer = Replayer.open(path)
    opened_s = time.perf_counter() - begin_s
    scenarios = _questions(replayer)
    counted = first_round_transactions(MOST_PLACEMENTS)
    begin_s = time.perf_counter()
    quick = _rates(
        replayer, [SimulationRequest(scenario, 0, SPAN_S, enough=counted) for scenario in scenarios]
    )
    took_s = time.perf_counter() - begin_s
    chosen = sorted(random.Random(0).sample(range(len(scenarios)), LOOKED_AT_LONGER))
    begin_s = time.perf_counter()
    seeds = [
        _rates(replayer, [SimulationRequest(scenarios[number], seed) for number in chosen])
        for seed in range(1, SEEDS + 1)
    ]
    longer_s = time.perf_counter() - begin_s
    longer = [statistics.fmean(rates) for rates in zip(*seeds, strict=True)]
    order, short = _order([quick[number] for number in chosen], longer)
    work = replayer.work
    print(
        f"{path.name}: {work.sessions} clients, {work.span_s:.1f} s recorded"
        f"{', done once' if work.once else ''}; opened in {opened_s:.2f} s"
    )
    print(
        f"  {len(scenarios):,} placements in {took_s:.1f} s on {os.cpu_count()} processors "
        f"(bar {TIME_BAR_S:.0f} s); {LOOKED_AT_LONGER} for longer, {SEEDS} seeds: {longer_s:.1f} s"
    )
    print(
        f"  order of pairs {100 * (APART - 1):.0f} % apart: {order:.1%} right (bar {ORDER_BAR:.0%}); "
        f"the best of the first {FIRST} is {short:.1%} below the best",
        flush=True,
    )
    return took_s <= TIME_BAR_S and order >= ORDER_BAR


def _questions(replayer: Replayer) -> list[Scenario]:
    """Every placement of the busiest roles on the devices."""
    busy = {role_io.role: role_io.busy_s for role_io in replayer.reproduce([0], SPAN_S).outcomes[0].io}
    roles = sorted(replayer.work.footprints, key=lambda role: -busy.get(role, 0.0))[:ROLES]
    places = itertools.product(DEVICES, repeat=len(roles))
    return [Scenario(placement=dict(zip(map(str, roles), place, strict=True))) for place in places]


def _rates(replayer: Replayer, asked: Sequence[SimulationRequest]) -> list[float]:
    """Units of work a second."""
    outcomes = replayer.ask(asked)
    assert all(isinstance(outcome, SimulationOutcome) for outcome in outcomes), (
        "these devices are large enough for any example"
    )
    return [
        (1.0 if replayer.work.once else outcome.transactions) / outcome.elapsed_s
        for outcome in outcomes
        if isinstance(outcome, SimulationOutcome)
    ]


def _order(quick: Sequence[float], longer: Sequence[float]) -> tuple[float, float]:
    """The share of pairs in the right order, and the shortfall of the best of the first few."""
    pairs = [
        (quick[a] > quick[b]) == (longer[a] > longer[b])
        for a, b in itertools.combinations(range(len(longer)), 2)
        if max(longer[a], longer[b]) > APART * min(longer[a], longer[b])
    ]
    first = sorted(range(len(quick)), key=lambda number: -quick[number])[:FIRST]
    short = 1.0 - max(longer[number] for number in first) / max(longer)
    return statistics.fmean(pairs) if pairs else 1.0, short


if __name__ == "__main__":
    sys.exit(main())
