"""Predictions of databases that share a device for their logs, against the same databases measured.

``python benchmarks/shared_devices.py [--seconds S] [--repeats N] [--write PAGE]``. Each database is recorded
alone, with its log on an emulated NVMe SSD. Then the logs of two and of four databases lie on one other
emulated device, and all run at once on this host; the order of the sets is random. The recordings of a set
are replayed together for the same. All other files have a fast device of their own for each database.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from running import Case, recorded, running

from tierwise.device_models import profiles
from tierwise.host import ledger
from tierwise.host.disk.disk import EmulatedDisk, Partition
from tierwise.lab.engines.base import ConnectedClients
from tierwise.predict import JointPrediction, Predictor, Scenario, predict_together
from tierwise.predict.estimates import estimate_from_seeds

FAST = "ssd-nvme-dc"
SHARED = ("hdd-7k2", "hdd-10k-sas", "ssd-sata-consumer")
LOG_BYTES = 2 << 30
DATABASES = (
    Case("shop", "order_entry", 2, FAST, FAST),
    Case("bank", "tpcb", 4, FAST, FAST),
    Case("counter", "single_commit", 2, FAST, FAST),
    Case("second-bank", "tpcb", 2, FAST, FAST),
)
SETS = (
    ("shop", "bank"),
    ("bank", "counter"),
    ("shop", "counter"),
    ("shop", "bank", "counter", "second-bank"),
)


@dataclass(frozen=True)
class Row:
    """One database of a set on a shared device: rates in transactions a second."""

    device: str
    databases: tuple[str, ...]
    database: str
    alone_per_s: float
    together_per_s: float
    predicted: JointPrediction

    @property
    def error(self) -> float:
        """Predicted over measured rate together, less 1."""
        rate_per_s = self.predicted.together.rate_per_s
        assert rate_per_s is not None
        return rate_per_s.value / self.together_per_s - 1

    @property
    def covered(self) -> bool:
        """Whether the predicted interval contains the measured rate."""
        rate_per_s = self.predicted.together.rate_per_s
        return rate_per_s is not None and rate_per_s.low <= self.together_per_s <= rate_per_s.high


def main() -> int:
    """Record, measure, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a measurement")
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each set")
    parser.add_argument("--write", type=Path, help="page that is written")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="shared-") as folder:
        for case in DATABASES:
            print(f"recording {case.name}", file=sys.stderr)
            with running(case) as (engine, storage, clients):
                recorded(engine, storage, clients, Path(folder) / case.name, 2 * options.seconds)
        predictors = {case.name: Predictor.open(Path(folder) / case.name) for case in DATABASES}
    rows = [
        row for device in SHARED for row in _on_device(device, predictors, options.seconds, options.repeats)
    ]
    text = _page(rows, options, load)
    print(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    return 0


def _on_device(device: str, predictors: dict[str, Predictor], seconds: float, repeats: int) -> list[Row]:
    print(f"measuring on {device}", file=sys.stderr)
    measured = _measured(device, seconds, repeats)
    rows = []
    for databases in SETS:
        place = Scenario(placement={"log": f"{device}#1"}, emulated=True)
        predicted = predict_together(
            {name: predictors[name] for name in databases}, dict.fromkeys(databases, place)
        )
        for name, answer in zip(databases, predicted, strict=True):
            alone, together = measured[name,][name], measured[databases][name]
            rows.append(Row(device, databases, name, alone, together, answer))
    return rows


def _measured(device: str, seconds: float, repeats: int) -> dict[tuple[str, ...], dict[str, float]]:
    """The median rate of each database of each set, and of each alone."""
    sets = [*SETS, *((case.name,) for case in DATABASES)]
    measured: dict[tuple[str, ...], list[dict[str, float]]] = {table_set: [] for table_set in sets}
    with ExitStack() as undo:
        mounts = undo.enter_context(ledger.make_directory("mnt", parent=ledger.run_dir()))
        parts = [Partition(case.name, LOG_BYTES) for case in DATABASES]
        profile = profiles.load_profile(device)
        disk = undo.enter_context(
            EmulatedDisk.up(f"{mounts.name}-logs", profile, parts, mounts / "logs", seed=1)
        )
        mounts.chmod(0o711)
        (mounts / "logs").chmod(0o711)
        disk.set_timing(False)
        clients = {
            case.name: undo.enter_context(running(case, disk.mounts[case.name]))[2] for case in DATABASES
        }
        disk.set_timing(True)
        order = [table_set for table_set in sets for _ in range(repeats)]
        Random(1).shuffle(order)
        for table_set in order:
            measured[table_set].append(_rates({name: clients[name] for name in table_set}, seconds))
        disk.set_timing(False)
    return {
        name: {name: statistics.median(rates[name] for rates in all_rates) for name in name}
        for name, all_rates in measured.items()
    }


def _rates(clients: dict[str, ConnectedClients], seconds: float) -> dict[str, float]:
    """Transactions a second of databases that run at once."""
    with ThreadPoolExecutor(len(clients)) as pool:
        rates = pool.map(lambda client: json.loads(client.run(None, seconds)), clients.values())
        return {
            name: client["transactions"] / client["elapsed_s"]
            for name, client in zip(clients, rates, strict=True)
        }


def _page(rows: Sequence[Row], options: argparse.Namespace, load: float) -> str:
    errors = sorted(abs(row.error) for row in rows)
    kept = [abs(row.predicted.kept.value - row.together_per_s / row.alone_per_s) for row in rows]
    ratio = estimate_from_seeds([1 + row.error for row in rows])
    assert ratio is not None
    return _PAGE.format(
        rows=len(rows),
        sets=len(SHARED) * len(SETS),
        median=statistics.median(errors),
        worst=errors[-1],
        ratio=f"{ratio.value:.2f} in the mean (95 %: {ratio.low:.2f} to {ratio.high:.2f})",
        covered=sum(row.covered for row in rows),
        kept=statistics.median(kept),
        worst_kept=max(kept),
        load=load,
        cores=os.cpu_count(),
        repeats=options.repeats,
        seconds=options.seconds,
        recorded=2 * options.seconds,
        fast=FAST,
        table="\n".join(map(_line, rows)),
    )


def _line(row: Row) -> str:
    rate_per_s = row.predicted.together.rate_per_s
    assert rate_per_s is not None
    predicted = f"{rate_per_s.value:.0f} ({rate_per_s.low:.0f} to {rate_per_s.high:.0f})"
    cells = [
        row.device,
        len(row.databases),
        row.database,
        f"{row.alone_per_s:.0f}",
        f"{row.together_per_s:.0f}",
    ]
    return f"| {' | '.join(map(str, [*cells, predicted, f'{row.error:+.0%}']))} |"


_PAGE = """# Databases that share a device

`predict` replays several recordings together, on one model of the device that they share. This page says how
far its rates are from those of the same databases measured. The command that writes it:

```
python benchmarks/shared_devices.py --write docs/evidence/shared-devices.md
```

## Finding

{rows} predictions for {sets} sets of databases. The rates are apart by {median:.0%} in the median,
{worst:.0%} at most. Predicted over measured is {ratio}.
{covered} of {rows} intervals contain the measured rate. The share of
its rate that a database keeps is predicted within {kept:.2f} in the median, {worst_kept:.2f} at most.

## Conditions

Load average before the start: {load:.1f}. All databases and their clients share {cores} cores in the
measurement; in the prediction each database has its own. A rate is the median of {repeats} measurements
of {seconds:g} s, in random order with those of each database alone. A recording took {recorded:g} s,
with the log on {fast}.

## Sets

| device | databases | database | measured alone | measured together | predicted together | error |
| --- | ---: | --- | ---: | ---: | ---: | ---: |
{table}
"""


if __name__ == "__main__":
    sys.exit(main())
