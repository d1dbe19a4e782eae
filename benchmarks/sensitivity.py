"""What predictions owe to each constant of the model: recordings replayed with it halved and doubled.

``python benchmarks/sensitivity.py FOLDER... [--only NAME...]`` replays all recordings in some folders as they
are, with everything on an SSD and on a 7,200 rpm disk, and does so again with each figure of
crates/work/src/constants.rs times 0.5 and times 2. For this it builds an extension that takes one factor from
the environment; the installed one does not. It prints a Markdown table: the change of the mean of
|ln(reproduced / recorded)| in points, and the mean of |ln(predicted / predicted without the factor)|.
Nothing is measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parents[1]
CONSTANTS = ROOT / "crates/work/src/constants.rs"
TARGET = ROOT / "target/sensitivity"
EXTENSION = TARGET / "release/lib_core.so"
VARIABLE = "TIERWISE_SCALED_CONSTANT"
FACTORS = (0.5, 2.0)
PLACEMENTS = ("ssd-nvme-dc", "hdd-7k2")
SPAN_S = 2.0
MOST_BYTES = 4 << 30
"""Memory limit of one process: a figure outside its range can make a replay endless."""
Figures = dict[str, tuple[float, list[float | None]]]
"""Per recording: ln(reproduced / recorded), and ln of the rate under each placement, if answered."""


def main() -> int:
    """Build, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--only", nargs="*", default=_names())
    parser.add_argument("--replay", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        print(json.dumps(_figures(options.folder)))
        return 0
    _build()
    whole = _replayed(options.folder, None)
    print(f"{len(whole)} recordings, mean error reproduced {100 * _error(whole):.1f} %\n")
    print("| constant | error reproduced, half | twice | predictions change, half | twice |")
    print("|" + " --- |" * 5)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = pool.map(lambda name: _scaled(options.folder, name), options.only)
        for name, scaled in zip(options.only, judged, strict=True):
            errors = [
                f"{100 * (_error(judged) - _error(whole)):+.1f}" if judged else "fails" for judged in scaled
            ]
            changes = [f"{100 * _change(judged, whole):.1f} %" if judged else "fails" for judged in scaled]
            print(f"| {' | '.join([f'`{name}`', *errors, *changes])} |", flush=True)
    return 0


def _names() -> list[str]:
    return re.findall(r"^    ([A-Z_]+): (?:u64|f64) =", CONSTANTS.read_text("utf-8"), re.MULTILINE)


def _build() -> None:
    options = ["--quiet", "--release", "--locked", "--package", "tierwise-bindings"]
    features = ["--features", "pyo3/extension-module,sensitivity", "--target-dir", str(TARGET)]
    subprocess.run(["cargo", "build", *options, *features], cwd=ROOT, check=True)


def _scaled(folders: list[Path], name: str) -> list[Figures]:
    return [_replayed(folders, f"{name}={factor}") for factor in FACTORS]


def _replayed(folders: list[Path], scaled: str | None) -> Figures:
    """Figures from a separate process, since the extension reads its environment once; none if it fails."""
    completed = subprocess.run(
        [sys.executable, __file__, *map(str, folders), "--replay"],
        env=os.environ | ({} if scaled is None else {VARIABLE: scaled}),
        check=scaled is None,
        capture_output=True,
        text=True,
    )
    figures: Figures = json.loads(completed.stdout) if completed.returncode == 0 else {}
    return figures


def _figures(folders: list[Path]) -> Figures:
    """Figures of all recordings, from the scalable extension."""
    spec = importlib.util.spec_from_file_location("tierwise._core", EXTENSION)
    assert spec is not None and spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = core
    spec.loader.exec_module(core)
    from tierwise.model.errors import TierwiseError  # after the extension that it is to use
    from tierwise.predict.replayer import Replayer, SimulationRequest
    from tierwise.predict.scenario import Scenario
    from tierwise.predict.simulator_output import SimulationOutcome

    def rate(outcome: object) -> float | None:
        if isinstance(outcome, SimulationOutcome) and outcome.turns > 0:
            return math.log(outcome.turns / outcome.elapsed_s)
        return None

    figures: Figures = {}
    scenarios = [Scenario(placement={"all": device}) for device in PLACEMENTS]
    for path in sorted(about.parent for folder in folders for about in folder.rglob("about.json")):
        try:
            replayer = Replayer.open(path)
            again = replayer.reproduce([0], SPAN_S)
        except TierwiseError:
            continue
        answers = replayer.ask([SimulationRequest(scenario, seed=0, span_s=SPAN_S) for scenario in scenarios])
        figures[str(path)] = math.log1p(again.error), [rate(answer) for answer in answers]
    return figures


def _error(figures: Figures) -> float:
    return fmean(abs(error) for error, _ in figures.values())


def _change(figures: Figures, whole: Figures) -> float:
    pairs = [
        (figure, other)
        for path in figures.keys() & whole.keys()
        for figure, other in zip(figures[path][1], whole[path][1], strict=True)
    ]
    return fmean(abs(sample - other) for sample, other in pairs if sample is not None and other is not None)


if __name__ == "__main__":
    sys.exit(main())
