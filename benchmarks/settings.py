"""What commits that do not wait for a flush gain, measured in slots and predicted, on four engines.

``python benchmarks/settings.py [CASE...] [--pairs N] [--placement NAME]... [--spec FILE]``, as root. A
case of ``tierwise validate`` is brought up twice on each placement, as it is and with the setting. It is
recorded once and the setting is predicted. Then the client runs against both in random order, in pairs.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tierwise import open_recording
from tierwise.api.recordings import RecordedRun
from tierwise.lab.validation.placed_database import PlacedDatabase, database_template_of, place_database
from tierwise.lab.validation.validation_case import ValidationCase, cases_to_run
from tierwise.lab.validation.validation_spec import load_validation
from tierwise.predict.estimates import estimate_from_seeds

SETTINGS: dict[str, tuple[dict[str, str | int], dict[str, str], str]] = {
    "postgres": ({}, {"synchronous_commit": "off"}, "synchronous_commit=off"),
    "mariadb": ({}, {"innodb-flush-log-at-trx-commit": "2"}, "innodb_flush_log_at_trx_commit=2"),
    "sqlite": ({"synchronous": "normal"}, {}, "synchronous=NORMAL"),
    "rocksdb": ({"sync": 0}, {}, "sync=false"),
}
"""Engine -> options of its client or settings of its server, and the setting's name in predictions."""
CASES = ["simple-4", "write_only-mariadb-4", "sqlite-wal", "db_bench-overwrite-4"]
PLACEMENTS = ["own", "all-gp3", "all-7k2", "log-7k2"]


def main() -> int:
    """Measure, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a slot")
    parser.add_argument("--placement", action="append", default=[])
    parser.add_argument("--spec", type=Path, help="file of cases, as of tierwise validate")
    options = parser.parse_args()
    cases, left_out = cases_to_run(load_validation(options.spec), options.cases)
    for what, why in left_out.items():
        print(f"{what}: {why}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        for case in cases:
            wanted = options.placement or PLACEMENTS
            for placement in [name for name in wanted if name in case.placements]:
                _compare(case, placement, options, Path(folder))
    return 0


def _seed() -> int:
    """Of a client's random numbers: what it repeats would be in the cache, or written as it is."""
    return random.randrange(1, 1 << 31)


def _compare(case: ValidationCase, placement: str, options: argparse.Namespace, folder: Path) -> None:
    """Print the predicted and the measured ratio of the rates, with 95 % intervals."""
    client, server, setting = SETTINGS[case.engine]
    spec = case.spec.model_copy(update={"options": {**case.spec.options, **client}})
    unflushed = replace(case, spec=spec, changed={placement: server})
    template = database_template_of(case, folder / "templates", lambda _: None)
    with ExitStack() as undo:
        up: list[PlacedDatabase] = []
        for number, each in enumerate((case, unflushed)):
            own = folder / f"own-{number}"
            own.mkdir(exist_ok=True)
            up.append(
                undo.enter_context(place_database(each, placement, template, own, 1, drop_caches=False))
            )
            up[-1].warm_up()
            up[-1].run(options.seconds, _seed())
            up[-1].settle()
        recording = folder / "recording"
        up[0].run(2 * options.seconds, _seed(), recording)
        up[0].settle()
        ratios = []
        for _ in range(options.pairs):
            rates, seed = dict.fromkeys(random.sample([0, 1], 2), 0.0), _seed()
            for number in rates:
                done = up[number].run(options.seconds, seed)
                rates[number] = done["transactions"] / done["elapsed_s"]
                up[number].settle()
            ratios.append(rates[1] / rates[0])
    measured = estimate_from_seeds(ratios)
    run = open_recording(recording)
    assert isinstance(run, RecordedRun)
    predicted = run.predict(settings=[setting]).speedup
    assert measured is not None
    shown = [
        f"{each.value:.3g} ({each.low:.3g} to {each.high:.3g})" if each else "not"
        for each in (predicted, measured)
    ]
    print(
        f"{case.name} on {placement}, {setting}: predicted {shown[0]}, measured {shown[1]} (95 %), "
        f"{len(ratios)} pairs",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
