"""Malformed inputs of twenty kinds: each must end in one printable line, within 5 s and 500 MB.

``python -m support.malformed --count 10000`` is the long run of `make robust`; with ``--recordings``, of what
others sent. A test makes a short one. Each input is tried in a process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import shutil
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.forked import MOST_BYTES, Ended, forked
from support.malformed_kinds import EXAMPLE, SHIPPED, Kind, command, mutated
from support.malformed_recordings import RECORDING_KINDS, printed_forecast
from support.paths import ROOT
from support.results_factory import Make, run
from tierwise.advise.forecast_file import read_forecasts
from tierwise.device_models import profiles
from tierwise.device_models.prices import PriceList
from tierwise.lab.studies import study
from tierwise.lab.validation.validation_spec import load_validation
from tierwise.lab.workloads import Workload

LONGEST_S = 5
MOST_WAITED_S = 30
"""A busy machine takes longer for five seconds of work."""
_ANSWERED = (0, 1, 2, 3)
_COMMANDS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_KEPT = "\n\t\u2060"


def _file(folder: Path, name: str, source: Path, draw: random.Random) -> Path:
    file = folder / name
    file.write_bytes(mutated(source.read_bytes(), draw))
    return file


def _study(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = _file(folder, "study.toml", draw.choice(sorted((SHIPPED / "studies").glob("*.toml"))), draw)
    return lambda: study.load_study(str(file))


def _workload(folder: Path, draw: random.Random) -> Callable[[], object]:
    source = draw.choice(
        [path for path in sorted((SHIPPED / "workloads").iterdir()) if (path / "schema.sql").exists()]
    )
    own = folder / "workload"
    shutil.copytree(source, own)
    chosen = draw.choice([path for path in sorted(own.rglob("*")) if path.is_file()])
    chosen.write_bytes(mutated(chosen.read_bytes(), draw))
    return lambda: Workload.load(str(own)).resolve(0.01, dialect="postgres")


def _pgbench(folder: Path, draw: random.Random) -> Callable[[], object]:
    source = draw.choice(sorted((ROOT / "examples" / "pgbench").glob("*.pgbench")))
    file = _file(folder, "script.pgbench", source, draw)
    return lambda: Workload.load(str(file)).resolve(0.01, dialect="postgres")


def _profile(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = _file(folder, "device.toml", draw.choice(sorted(profiles.FOLDER.glob("*.toml"))), draw)
    return command("device", "simulate", file, "--preset", "randread-4k", "--count", "50")


def _requests(folder: Path, draw: random.Random) -> Callable[[], object]:
    lines = b"op,lbn,sectors,arrival_us\n" + b"".join(b"R,%d,8,%d\n" % (8 * n, 90 * n) for n in range(40))
    content = mutated(lines, draw)
    if draw.random() < 0.4:
        content = mutated(gzip.compress(content), draw)
    file = folder / "requests.csv"
    file.write_bytes(content)
    return command("device", "simulate", "hdd-7k2", "--requests", file)


def _results(folder: Path, draw: random.Random) -> Callable[[], object]:
    lines = b"".join(run(Make(order=n, repeat=n)).model_dump_json().encode() + b"\n" for n in range(2))
    (folder / "results.jsonl").write_bytes(mutated(lines, draw))
    return draw.choice([command("report", folder), command("compare", folder, folder)])


def _options(folder: Path, draw: random.Random) -> Callable[[], object]:
    values = [
        "-1",
        "0",
        "nan",
        "inf",
        "1e400",
        "9" * 30,
        "x",
        "",
        "\0",
        "../..",
        "log=",
        "=",
        "log=a,b",
        "1GBB",
        "½",
    ]
    options = {
        "predict": ["--place", "--memory", "--cores", "--clients", "--seeds", "--rate", "--growth"],
        "advise": [
            "--devices",
            "--budget",
            "--goal",
            "--seeds",
            "--have",
            "--headroom",
            "--years",
            "--recorded-on",
        ],
        "simulate": ["--count", "--duration", "--depth", "--seed", "--precondition", "--preset"],
    }
    name = draw.choice(sorted(options))
    chosen = [word for option in draw.sample(options[name], 2) for word in (option, draw.choice(values))]
    if name == "simulate":
        return command("device", "simulate", "ram", "--preset", "randread-4k", "--count", "50", *chosen)
    return command(name, EXAMPLE, *chosen)


def _forecast(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = folder / "forecast.json"
    file.write_bytes(mutated(printed_forecast(), draw))
    return lambda: read_forecasts(file)


def _validation(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = _file(folder, "validate.toml", SHIPPED / "validation.toml", draw)
    return lambda: load_validation(file)


def _prices(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = _file(folder, "prices.toml", SHIPPED / "prices.toml", draw)
    return lambda: PriceList.read(file)


KINDS = [
    Kind("study", _study),
    Kind("workload", _workload),
    Kind("pgbench", _pgbench),
    Kind("profile", _profile),
    Kind("requests", _requests),
    Kind("results", _results),
    Kind("options", _options),
    Kind("validation", _validation),
    Kind("prices", _prices),
    Kind("forecast", _forecast),
    *RECORDING_KINDS,
]


def attempt(kind: Kind, seed: int) -> str | None:
    """Try one input; gives what went wrong, or ``None``."""
    with tempfile.TemporaryDirectory(prefix="tierwise-malformed-") as name:
        ended = forked(kind.make(Path(name), random.Random(seed)), within_s=MOST_WAITED_S)
    if ended.status is None:
        return f"hang over {MOST_WAITED_S} s"
    if ended.taken_bytes > MOST_BYTES:
        return f"took {ended.taken_bytes >> 20} MiB"
    if ended.defect or ended.status not in _ANSWERED:
        return ended.defect or _defect(ended)
    if "\n" in ended.refused:
        return f"more than one line: {ended.refused}"
    if any(
        unicodedata.category(character) in _COMMANDS and character not in _KEPT for character in ended.printed
    ):
        return f"prints what a terminal obeys: {ascii(ended.printed)[-200:]}"
    return f"took {ended.cpu_s:.1f} s" if ended.cpu_s > LONGEST_S else None


def _defect(ended: Ended) -> str:
    """The end of the traceback that a defect leaves in a file, which is removed."""
    if match := re.search(r"details are in (\S+)", ended.printed):
        file = Path(match[1])
        lines = file.read_text("utf-8").strip().splitlines()
        file.unlink()
        places = [line.strip() for line in lines if line.strip().startswith("File ")][-3:]
        return f"{lines[-1]} | {' < '.join(reversed(places))}"
    return f"exit status {ended.status}: {ended.printed[-200:]}"


def main() -> None:
    """Try many, and print what went wrong with its seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="inputs of all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="of the first input")
    parser.add_argument("--recordings", action="store_true", help="only recordings, results and profiles")
    parser.add_argument("--kind", help="only this kind")
    arguments = parser.parse_args()
    kinds = RECORDING_KINDS if arguments.recordings else KINDS
    kinds = [kind for kind in kinds if arguments.kind in (None, kind.name)]
    failures: Counter[str] = Counter()
    began_s = time.monotonic()
    for number in range(arguments.count):
        kind = kinds[number % len(kinds)]
        problem = attempt(kind, arguments.seed + number)
        if problem is not None:
            failures[f"{kind.name}: {problem}"[:200]] += 1
            print(f"{kind.name} {arguments.seed + number}: {problem}", flush=True)
    print(f"{arguments.count} inputs, {failures.total()} failures, {time.monotonic() - began_s:.0f} s")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
