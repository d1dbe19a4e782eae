"""How far the search of placements falls short of simulating all of them, at every amount of money.

``python benchmarks/front_search.py [--write PAGE] [--share SHARE]``. Each case is a shipped recording and a
set of devices whose placements are few enough to simulate all. The search may simulate a share of them. For
each budget at which the exhaustive front rises, the regret is how much slower the best found placement
within the budget is than the best of all. A random sample of as many placements is compared too. One large
case follows: the search within its usual limit, against a random sample of as many placements.
"""

from __future__ import annotations

import argparse
import itertools
import random
import resource
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tierwise.advise.costs import PlacementCosts
from tierwise.predict import Predictor
from tierwise.predict.named_devices import RECORDED
from tierwise.predict.ranking import (
    MOST_PLACEMENTS,
    RankedPlacement,
    all_placements,
    cost_front,
    rank_placements,
    roles_by_load,
)

EXAMPLES = Path(__file__).parents[1] / "examples/recordings"
DEVICES = (
    "hdd-10k-sas",
    "ssd-sata-dc",
    "ssd-nvme-dc",
    "ssd-pcie-slc-2008",
    "volume-aws-gp3",
    "volume-aws-io2",
    "ssd-dram-fc",
    "hdd-7k2",
)
SIZES = (3, 4, 5, 6, 7, 8)
STARTS = (0, 3, 5)
"""Numbers of devices of a case, the recorded ones counted as one."""
LEAST = 60
"""Placements of a case at least."""
MOST_OF_CASE = 1500
_SAME = 1e-9
LARGE = 100_000
"""Placements of the large case at least."""


@dataclass(frozen=True)
class Regret:
    """One case: shares of the rate that is missed at each budget, of the search and of a sample."""

    name: str
    count: int
    simulated: int
    search: list[float]
    sample: list[float]


def main() -> int:
    """Run the cases, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--share", type=float, default=0.125, help="of the placements, to simulate")
    parser.add_argument("--write", type=Path, help="page to write")
    asked = parser.parse_args()
    regrets = []
    for case in _cases():
        regret = _regret(*case, asked.share)
        print(_row(regret), flush=True)
        regrets.append(regret)
    text = _page(regrets, asked.share, _large())
    print(text)
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")
    return 0


def _cases() -> Iterator[tuple[str, Predictor, list[str]]]:
    for path in sorted(EXAMPLES.glob("*/")):
        predictor = Predictor.open(path)
        roles = len(roles_by_load(predictor)[1])
        for size in SIZES:
            if LEAST <= size**roles <= MOST_OF_CASE:
                for start in STARTS:
                    others = [DEVICES[(start + number) % len(DEVICES)] for number in range(size - 1)]
                    yield f"{path.name}, {size} devices, from {others[0]}", predictor, others


def _regret(name: str, predictor: Predictor, others: Sequence[str], share: float) -> Regret:
    costs = PlacementCosts.of(predictor)

    def cost(ranked: RankedPlacement) -> float:
        return costs.cost_per_month(ranked.placement)

    devices = [RECORDED, *others]
    everything = rank_placements(predictor, devices, keep=costs.fits, cost=cost, closer=0)
    most = max(round(share * everything.tried), 1)
    ranked = rank_placements(predictor, devices, keep=costs.fits, cost=cost, closer=0, most=most).ranked
    sample = random.Random(name).sample(everything.ranked, len(ranked))
    priced = [(cost(placing), placing) for placing in everything.ranked]
    steps = cost_front(priced)
    missed = [
        [1.0 - _best(part, budget, cost) / step.rate_per_s for budget, step in steps]
        for part in (ranked, sample)
    ]
    return Regret(name, everything.tried, len(ranked), *missed)


def _best(part: Sequence[RankedPlacement], budget: float, cost: Callable[[RankedPlacement], float]) -> float:
    return max((ranked.rate_per_s for ranked in part if cost(ranked) <= budget), default=0.0)


def _row(regret: Regret) -> str:
    words = [f"{statistics.median(part):.1%} | {max(part):.1%}" for part in (regret.search, regret.sample)]
    counts = f"{regret.count:,} | {regret.simulated:,} | {len(regret.search)}"
    return f"| {regret.name} | {counts} | {words[0]} | {words[1]} |"


def _large() -> str:
    opened = [(path, Predictor.open(path)) for path in sorted(EXAMPLES.glob("*/"))]
    path, predictor = max(opened, key=lambda pair: len(roles_by_load(pair[1])[1]))
    roles = roles_by_load(predictor)[1]
    devices = [RECORDED, *DEVICES]
    number = itertools.count(2)
    while len(devices) ** len(roles) < LARGE:
        devices.append(f"ssd-nvme-dc#{next(number)}")
    costs = PlacementCosts.of(predictor)

    def cost(ranked: RankedPlacement) -> float:
        return costs.cost_per_month(ranked.placement)

    begin_s = time.perf_counter()
    ranking = rank_placements(predictor, devices, keep=costs.fits, cost=cost, closer=0)
    took_s = time.perf_counter() - begin_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    every = [placement for placement in all_placements(roles, devices) if costs.fits(placement)]
    chosen = {tuple(placement.items()) for placement in random.Random(1).sample(every, MOST_PLACEMENTS)}
    sample = rank_placements(
        predictor,
        devices,
        keep=lambda placement: tuple(placement.items()) in chosen,
        closer=0,
        most=len(every) + 1,
    ).ranked
    steps = cost_front([(cost(look), look) for look in sample])
    more = [_best(ranking.ranked, budget, cost) / step.rate_per_s for budget, step in steps]
    count, budgets = len(devices) ** len(roles), len(steps)
    text = (
        f"{path.name}, {len(roles)} roles on {len(devices)} devices: {count:,} placements, {ranking.tried:,} "
        f"simulated in {took_s:.0f} s, {peak_mb:.0f} MB at most. At the {budgets} budgets at which the front "
        f"of a random sample of {len(sample):,} placements rises, the best found placement is "
        f"{min(more):.2f} to {max(more):.2f} times as fast as the best of the sample (median "
        f"{statistics.median(more):.2f})."
    )
    return textwrap.fill(text, 110) + "\n"


PAGE = """# Search of placements

`predict --devices` and `advise` simulate up to 4,096 placements. For more, a local search of the front of
rate and cost chooses which to simulate. Here the search may simulate {share:.1%} of the placements of cases
that are small enough to simulate all; of 64 placements, these are 8. The regret at a budget is the share of
the best rate that the best found placement misses. A random sample of as many placements is beside it. All
figures are the simulator's, under one seed: its own error is not in them. The search was not changed after
it first met these cases.

Made by `benchmarks/front_search.py`.

| case | placements | simulated | budgets | search: median | greatest | random sample: median | greatest |
|---|--:|--:|--:|--:|--:|--:|--:|
{rows}

Over {budgets} budgets of {cases} cases, the search misses {mean:.2%} in the mean and {greatest:.1%} at
most. It finds the best rate at {best} of them. The random sample misses {sampled:.1%} in the mean
and {worst:.1%} at most.

## A large case

{large}"""


def _page(regrets: Sequence[Regret], share: float, large: str) -> str:
    searched = [regret for case in regrets for regret in case.search]
    sampled = [regret for case in regrets for regret in case.sample]
    return PAGE.format(
        share=share,
        rows="\n".join(map(_row, regrets)),
        budgets=len(searched),
        cases=len(regrets),
        mean=statistics.mean(searched),
        greatest=max(searched),
        best=sum(regret < _SAME for regret in searched),
        sampled=statistics.mean(sampled),
        worst=max(sampled),
        large=large,
    )


if __name__ == "__main__":
    sys.exit(main())
