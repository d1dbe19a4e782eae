"""Bounds of predictions against measurements: everything moved from the machine's own storage to memory.

``python benchmarks/bounds.py --write docs/evidence/bounds.md`` runs each case as a study of real directories,
with each run recorded. It compares the ratio of the elapsed times with the bound that the recordings of the
slow placement state. Memory answers at once, so that no device gains more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tierwise.host import doctor
from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor, Scenario

REPEATS = 5
OBJECTS = "constants.size = 100\nconstants.n ="
ORDERS = "scale = 0.3\nwarmup_transactions = 1000"
CASES = {
    "postgres, order entry, 1 client": ("order_entry", f"{ORDERS}\nclients = 1\ntransactions = 15000"),
    "postgres, order entry, 4 clients": ("order_entry", f"{ORDERS}\nclients = 4\ntransactions = 40000"),
    "mariadb, order entry, 1 client": ("order_entry", f"{ORDERS}\nclients = 1\ntransactions = 15000"),
    "mariadb, order entry, 4 clients": ("order_entry", f"{ORDERS}\nclients = 4\ntransactions = 40000"),
    "sqlite, small objects": ("simple_objects", f"{OBJECTS} 6000"),
    "rocksdb, small objects": ("simple_objects", f"{OBJECTS} 10000"),
    "duckdb, bulk copy": ("bulk_copy", "scale = 6"),
}
"""Engine and what it does -> workload, and keys of the study."""
STUDY = """
name = "bounds"
question = "What does storage that answers at once gain?"
engines = ["{engine}"]
workload = "{workload}"
repeats = {repeats}
baseline = "own"
{keys}
[devices.own]
path = "{own}"
[devices.memory]
path = "{memory}"
[placements.own]
default = "own"
[placements.memory]
default = "memory"
"""


@dataclass(frozen=True)
class Row:
    """One case: what was measured, and what was stated before."""

    case: str
    slow_s: list[float]
    fast_s: list[float]
    bounds: list[float]
    predicted: list[float]

    @property
    def ratios(self) -> list[float]:
        """Measured gains: median over median, then the least and the greatest of a slow over a fast run."""
        middle = statistics.median(self.slow_s) / statistics.median(self.fast_s)
        return [middle, min(self.slow_s) / max(self.fast_s), max(self.slow_s) / min(self.fast_s)]


def main() -> None:
    """Run the cases, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="a directory in memory")
    parser.add_argument("--own", type=Path, default=Path("/var/tmp"), help="a directory on the storage")
    parser.add_argument("--case", help="only cases that contain this")
    parser.add_argument("--write", type=Path, help="page to write")
    chosen = parser.parse_args()
    rows = []
    for case in CASES:
        if chosen.case is None or chosen.case in case:
            rows.append(measured(case, chosen.own, chosen.memory))
            print(line(rows[-1]), flush=True)
    if chosen.write:
        chosen.write.write_text(page(rows), encoding="utf-8")
    if any(row.ratios[0] > max(row.bounds, default=0.0) for row in rows):
        sys.exit("a bound was exceeded")


def measured(case: str, own: Path, memory: Path) -> Row:
    """Run a case in new directories."""
    engine, (workload, keys) = case.partition(",")[0], CASES[case]
    with tempfile.TemporaryDirectory(dir=own) as slow, tempfile.TemporaryDirectory(dir=memory) as fast:
        work = Path(slow)
        (work / "device").mkdir()
        for folder in (work, work / "device", Path(fast)):
            folder.chmod(0o755)
        study = work / "bounds.toml"
        places = {"own": work / "device", "memory": fast}
        study.write_text(
            STUDY.format(engine=engine, workload=workload, keys=keys, repeats=REPEATS, **places), "utf-8"
        )
        command = [sys.executable, "-m", "tierwise", "study", "run", str(study), "--duty", "0.05"]
        command += ["--record", str(work / "recordings"), "--output", str(work / "results")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        elapsed_s: dict[str, list[float]] = {"own": [], "memory": []}
        for file in (work / "results").rglob("results.jsonl"):
            for text in file.read_text("utf-8").splitlines():
                run = json.loads(text)
                elapsed_s[run["placement"]].append(run["elapsed_s"])
        recordings = sorted(file.parent for file in (work / "recordings").rglob("about.json"))
        stated = [
            answer for recording in recordings if "own" in recording.parts for answer in answers(recording)
        ]
    bounds, predicted = ([answer[which] for answer in stated] for which in (0, 1))
    return Row(case, elapsed_s["own"], elapsed_s["memory"], bounds, predicted)


def answers(recording: Path) -> list[tuple[float, float]]:
    """Bound and high end of the predicted gain; none of a recording that answers nothing."""
    try:
        (answer,) = Predictor.open(recording).predict([Scenario(placement={"all": "zero"})])
    except TierwiseError as error:
        print(f"{recording}: {error}", file=sys.stderr)
        return []
    return [(answer.bound.speedup, answer.speedup.high)] if answer.bound and answer.speedup else []


def line(row: Row) -> str:
    """A row of the page's table."""
    middle, low, high = row.ratios
    span = f"{min(row.bounds):.1f} to {max(row.bounds):.1f}" if row.bounds else "none"
    above = f"{statistics.median(row.predicted):.2f}" if row.predicted else "–"
    verdict = (
        "holds" if row.bounds and middle <= min(row.bounds) else "exceeded" if row.bounds else "none stated"
    )
    return (
        f"| {row.case} | {len(row.slow_s)} + {len(row.fast_s)} | {middle:.2f} ({low:.2f} to {high:.2f}) "
        f"| {span} | {verdict} | {above} |"
    )


def is_reached(row: Row) -> bool:
    """Whether the high end of the predicted interval is at least the measured gain."""
    return bool(row.predicted) and statistics.median(row.predicted) >= row.ratios[0]


def page(rows: list[Row]) -> str:
    """The page with its conditions."""
    about = doctor.describe_machine()
    return "\n".join([
        "# Bounds of predictions",
        "",
        "<!-- written by benchmarks/bounds.py -->",
        "",
        "`predict` states the most that a move can gain (\"at most 2.5 times\"). Here everything moves from "
        "the machine's own storage to memory, which answers at once. The recordings of the runs there "
        "state the bound.",
        "",
        f"Conditions: {about.cpu_model}, {about.cores} cores, Linux {about.kernel}; {REPEATS} runs on each "
        "side. They were interleaved at random, and each was recorded with a duty of 5 %. Gain: the median "
        "time on the storage over that in memory, and the least and greatest ratio of two runs.",
        "",
        "| case | runs | measured gain | bounds stated | | high end of the predicted interval |",
        "|---|---|---|---|---|---|",
        *map(line, rows),
        "",
        f"The predicted interval reaches the measured gain in {sum(map(is_reached, rows))} of {len(rows)} "
        "cases: the model keeps the processor time of a transaction, which falls with its waits. Read the "
        "bound beside the interval.",
        "",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
