"""How much of a recording predictions need: the first bursts of each, against all of them.

``python benchmarks/recorded_seconds.py FOLDER`` takes the recordings of mixes in a folder of rounds.
Each is cut after its first bursts, and predicts everything on an SSD and on a 7,200 rpm disk. It prints for
each number of bursts the median and the 90th percentile of |ln(predicted from these / predicted from all)|,
and the same of the reproduced rate. Nothing is measured, so no difference between two runs disturbs it.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
import zlib
from collections import defaultdict
from pathlib import Path

import duckdb
import numpy as np

from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor, Scenario

QUESTIONS = [
    Scenario(),
    Scenario(placement={"all": "ssd-nvme-dc"}),
    Scenario(placement={"all": "hdd-7k2"}),
]
FEWEST_BURSTS = 8
TIMES = {"states": "start_ns", "calls": "start_ns", "blocks": "issued_ns"}


def cut(recording: Path, bursts: int, out: Path) -> None:
    """A recording of only the first bursts; files store rows burst by burst, so that indices stay valid."""
    shutil.copytree(recording, out)
    about = json.loads((out / "about.json").read_text("utf-8"))
    whole = about["bursts"]
    end_ns = whole[bursts - 1]["end_ns"]
    about["bursts"] = whole[:bursts]
    about["duration_s"] *= (end_ns - whole[0]["start_ns"]) / (whole[-1]["end_ns"] - whole[0]["start_ns"])
    about["counters"], about["transactions"] = {}, None
    for table, time in TIMES.items():
        file, part = out / f"{table}.parquet", out / "part"
        chosen = f"SELECT * FROM read_parquet('{file}') WHERE {time} < {end_ns}"
        with duckdb.connect() as data:
            data.execute("SET preserve_insertion_order = true")
            data.execute(f"COPY ({chosen}) TO '{part}' (FORMAT parquet, COMPRESSION zstd)")
            (rows,) = data.execute(f"SELECT count(*) FROM read_parquet('{part}')").fetchone() or (0,)
        part.replace(file)
        content = file.read_bytes()
        facts = {"rows": rows, "size_bytes": len(content), "crc32": zlib.crc32(content)}
        about["tables"][table] = facts
    (out / "about.json").write_text(json.dumps(about), "utf-8")


def rates(recording: Path) -> list[float | None]:
    """Rates that a recording predicts, in transactions a second."""
    answers = Predictor.open(recording).predict(QUESTIONS)
    return [answer.rate_per_s.value if answer.rate_per_s else None for answer in answers]


def main() -> int:
    """Cut, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bursts", type=int, nargs="*", default=[1, 2, 4, 6])
    options = parser.parse_args()
    reproduced: dict[int, list[float]] = defaultdict(list)
    predicted: dict[int, list[float]] = defaultdict(list)
    used = 0
    for about in sorted(options.folder.rglob("about.json")):
        recording = about.parent
        if len(json.loads(about.read_text("utf-8"))["bursts"]) < FEWEST_BURSTS:
            continue
        used += 1
        whole = rates(recording)
        for bursts in options.bursts:
            with tempfile.TemporaryDirectory() as name:
                try:
                    cut(recording, bursts, Path(name) / "cut")
                    few = rates(Path(name) / "cut")
                except TierwiseError as error:
                    sys.stderr.write(f"{recording}, {bursts} bursts: {error}\n")
                    continue
            apart = [math.log(a / b) if a and b else math.nan for a, b in zip(few, whole, strict=True)]
            reproduced[bursts].append(abs(apart[0]))
            predicted[bursts] += map(abs, apart[1:])
    print(f"{used} recordings\n\n| bursts | recorded again | 90 % | predicted | 90 % | answered |")
    print("| --- | --- | --- | --- | --- | --- |")
    for bursts in options.bursts:
        cells = [
            f"{100 * np.nanquantile(rates_of[bursts], q):.1f} %"
            for rates_of in (reproduced, predicted)
            for q in (0.5, 0.9)
        ]
        answered = sum(not math.isnan(prediction) for prediction in predicted[bursts])
        print(f"| {bursts} | {' | '.join(cells)} | {answered} of {2 * used} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
