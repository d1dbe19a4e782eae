"""Share of the rate that recording costs: within bursts, or with ``--duty`` below 1 over bursts and pauses.

``python benchmarks/burst_loss.py [CASE...] [--pairs N] [--seconds S] [--placement NAME] [--duty D]``. A case
of ``tierwise validate`` is brought up on one placement. In each pair the client runs twice, in random order:
once alone, and once while it is recorded. Exit status 1 if the interval of a loss reaches above the bar.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import threading
from pathlib import Path

from tierwise.capture.record import RecordingSession
from tierwise.capture.schedule import BurstSchedule
from tierwise.lab.validation.placed_database import PlacedDatabase, database_template_of, place_database
from tierwise.lab.validation.validation_case import ValidationCase, cases_to_run
from tierwise.lab.validation.validation_spec import load_validation
from tierwise.predict.estimates import estimate_from_seeds

LOSS_BAR = 0.04
DEFAULT_DUTY_BAR = 0.005
"""Of recordings with bursts and pauses."""
CASES = ["simple-4", "tpcb-8", "write_only-mariadb-4", "read_only-postgres-20"]


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a slot")
    parser.add_argument("--placement", default="all-nvme")
    parser.add_argument("--duty", type=float, default=1.0, help="share of the time that is recorded")
    options = parser.parse_args()
    spec = load_validation()
    cases, left_out = cases_to_run(spec, options.cases)
    for what, why in left_out.items():
        print(f"{what}: {why}")
    highest = 0.0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        for case in cases:
            highest = max(highest, _measured(case, options, Path(folder)))
    bar = LOSS_BAR if options.duty == 1 else DEFAULT_DUTY_BAR
    print(f"bar: {bar:.1%} at a duty of {options.duty:g}, with all of its interval")
    return int(highest > bar)


def _measured(case: ValidationCase, options: argparse.Namespace, folder: Path) -> float:
    """Print the loss of a case; give the upper end of its interval."""
    template, own = database_template_of(case, folder / "templates", lambda _: None), folder / "own"
    own.mkdir(exist_ok=True)
    alone: list[float] = []
    ratios: list[float] = []
    with place_database(case, options.placement, template, own, 1, drop_caches=False) as servers:
        servers.warm_up()
        for _ in range(2):  # Rates rise at first.
            _alone(servers, options)
        for _ in range(options.pairs):
            rates = dict.fromkeys(random.sample(["alone", "recorded"], 2), 0.0)
            for kind in rates:
                rates[kind] = (
                    _alone(servers, options) if kind == "alone" else _recorded(servers, options, folder)
                )
                servers.settle()
            alone.append(rates["alone"])
            ratios.append(rates["recorded"] / rates["alone"])
    measured = estimate_from_seeds(ratios)
    assert measured is not None
    print(
        f"{case.name} on {options.placement}: {1 - measured.value:.1%} lost at a duty of {options.duty:g} "
        f"(95 %: {1 - measured.high:.1%} to {1 - measured.low:.1%}), {len(ratios)} pairs, "
        f"{statistics.median(alone):,.0f} a second alone",
        flush=True,
    )
    return 1 - measured.low


def _alone(placed: PlacedDatabase, options: argparse.Namespace) -> float:
    # What a client repeats would be in the cache, or written as it is.
    completed = placed.run(options.seconds, seed=random.randrange(1, 1 << 31))
    return float(completed["transactions"] / completed["elapsed_s"])


def _recorded(placed: PlacedDatabase, options: argparse.Namespace, folder: Path) -> float:
    """Rate while recorded, from the begin of a burst."""
    target = placed.database.target()
    assert target is not None
    out = folder / "recording"
    shutil.rmtree(out, ignore_errors=True)
    with RecordingSession(target, out, BurstSchedule(None, options.duty), lambda _: None) as session:
        begun = threading.Event()
        burst = threading.Thread(target=session.run, args=(begun.set,))
        burst.start()
        begun.wait()
        try:
            return _alone(placed, options)
        finally:
            session.stop()
            burst.join()


if __name__ == "__main__":
    raise SystemExit(main())
