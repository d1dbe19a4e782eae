"""Time and memory of the best set of a large fleet, with its draws and its curve, for random options.

``python benchmarks/fleet_size.py [--databases 1000,10000,100000]``. Each database has its recorded placement
and four others with random costs and speed-ups; the budget is 12 % of the price of all gains. Each size is a
process of its own, so that its peak of memory is known. Working out the options is no part of it.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from itertools import accumulate

from tierwise.advise import AdviceOptions, PaymentTerms
from tierwise.fleet.database_options import DatabaseOptions, FleetOption
from tierwise.fleet.fleet_advice import fleet_advice_from_options
from tierwise.fleet.fleet_databases import FleetWeights
from tierwise.model.placement import Role
from tierwise.predict import Estimate, resolve_device

DEVICES = ("ssd-nvme-dc", "volume-aws-gp3")
OTHERS = 4
BUDGET_SHARE = 0.12


def main() -> int:
    """Measure each size in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--databases", default="1000,10000,100000")
    parser.add_argument("--one", type=int, help="measure this size, in this process")
    options = parser.parse_args()
    if options.one:
        _measure(options.one)
        return 0
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}", flush=True)
    for count in options.databases.split(","):
        subprocess.run([sys.executable, __file__, "--one", count], check=True)
    return 0


def _measure(count: int) -> None:
    chance = random.Random(count)
    rows = [_database(f"shop-{number:06}", chance) for number in range(count)]
    full = sum(row.options[-1].cost_per_month for row in rows)
    devices = [resolve_device(device).name for device in DEVICES]
    options = AdviceOptions(devices, BUDGET_SHARE * full, terms=PaymentTerms())
    before_mb = _peak_mb()
    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    advice = fleet_advice_from_options(rows, options, FleetWeights())
    print(
        f"{count:>7,} databases: {time.perf_counter() - begin_s:.1f} s, "
        f"{time.process_time() - begin_cpu_s:.1f} s of CPU time, gap {advice.gap:.2g}, "
        f"peak memory {_peak_mb():.0f} MB, of which the options {before_mb:.0f} MB",
        flush=True,
    )


def _database(name: str, chance: random.Random) -> DatabaseOptions:
    """A database whose options cost more, the faster they are."""
    costs = [0.0, *accumulate(chance.uniform(1, 60) for _ in range(OTHERS))]
    speedups = [1.0, *accumulate((chance.uniform(1.05, 2.5) for _ in range(OTHERS)), lambda a, b: a * b)]
    return DatabaseOptions(
        name=name,
        uri=name,
        engine="postgres",
        engine_version=None,
        unit="transactions",
        options=[_option(number, *each) for number, each in enumerate(zip(costs, speedups, strict=True))],
    )


def _option(number: int, cost: float, speedup: float) -> FleetOption:
    roles = (Role.LOG, Role.DATA, Role.INDEX, Role.TEMP)[:number]
    return FleetOption(
        placement=dict.fromkeys(roles, DEVICES[0]),
        cost_per_month=cost,
        speedup=Estimate(value=speedup, low=speedup / 1.3, high=speedup * 1.3),
        seed_half_width=0.02 if number else 0.0,
    )


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    sys.exit(main())
