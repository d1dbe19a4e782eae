"""Malformed inputs of ten kinds: each must end in one line, within 5 s and 500 MB.

``python -m support.malformed --count 10000`` is the long run of `make robust`; a test makes a short one.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from typer.testing import CliRunner

from support.paths import ROOT
from support.results_factory import Make, run
from tierwise.advise.forecast_file import read_forecasts
from tierwise.cli import app
from tierwise.device_models import profiles
from tierwise.device_models.prices import Prices
from tierwise.model.errors import TierwiseError
from tierwise.studies import study
from tierwise.validation import spec as validation
from tierwise.workloads import Workload

SHIPPED = ROOT / "python" / "tierwise" / "data"
EXAMPLE = ROOT / "examples" / "recordings" / "keyed-update"
LONGEST_S = 5
MOST_BYTES = 500 << 20
_TOKENS = [
    b"\0", b"\xff\xfe", b"[" * 3000, b"(" * 3000, b"-1", b"nan", b"inf", b"1e400", b"9" * 400, b'"', b"'",
    b"\n" * 50, b"../../../etc/passwd", b"true", b"[]", b"{}", b"= 3\n", b"[a.b]\n", b"x" * 5000, b";", b"--",
    b"\xe2\x80\xae", b"=",
]  # fmt: skip


class Hang(BaseException):
    """An input took too long."""


def mutated(content: bytes, draw: random.Random) -> bytes:
    """A few changes anywhere: bytes, tokens, cuts, repeats, numbers."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(changed) + 1)
        match draw.randrange(7):
            case 0:
                changed[at:at] = draw.choice(_TOKENS)
            case 1:
                changed[at : at + draw.randint(1, 40)] = b""
            case 2:
                del changed[at:]
            case 3:
                changed[at : at + 1] = bytes([draw.randrange(256)])
            case 4:
                changed[at:at] = changed[at : at + draw.randint(1, 200)]
            case 5:
                changed[at : at + draw.randint(1, 8)] = draw.choice(_TOKENS)
            case 6:
                _change_number(changed, draw)
    return bytes(changed)


def _change_number(content: bytearray, draw: random.Random) -> None:
    digits = [at for at, byte in enumerate(content) if 48 <= byte <= 57]
    if digits:
        at = draw.choice(digits)
        content[at : at + 1] = draw.choice([b"-1", b"0", b"99999999999999999999", b"nan", b"0.5", b'"x"'])


@dataclass(frozen=True)
class Kind:
    """One kind of input: makes a malformed one in a folder, and gives what is to be tried with it."""

    name: str
    make: Callable[[Path, random.Random], Callable[[], object]]


def command(*arguments: str | Path) -> Callable[[], object]:
    """A command, run as the command line runs it."""
    return lambda: app([str(one) for one in arguments])


def _file(folder: Path, name: str, source: Path, draw: random.Random) -> Path:
    file = folder / name
    file.write_bytes(mutated(source.read_bytes(), draw))
    return file


def _study(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = _file(folder, "study.toml", draw.choice(sorted((SHIPPED / "studies").glob("*.toml"))), draw)
    return lambda: study.load(str(file))


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
    lines = b"".join(run(Make(order=n)).model_dump_json().encode() + b"\n" for n in range(2))
    (folder / "results.jsonl").write_bytes(mutated(lines, draw))
    return draw.choice([command("report", folder), command("compare", folder, folder)])


def _recording(folder: Path, draw: random.Random) -> Callable[[], object]:
    own = folder / "recording"
    shutil.copytree(EXAMPLE, own)
    chosen = draw.choice([own / "about.json", *sorted(own.iterdir())])
    chosen.write_bytes(mutated(chosen.read_bytes(), draw))
    asked = ["predict", own, "--place", "log=nvme-dc"]
    return draw.choice(
        [command("profile", own), command(*asked), command("recording", "redact", own, "-o", folder / "out")]
    )


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


@cache
def _printed_forecast() -> bytes:
    printed = CliRunner().invoke(app, ["advise", str(EXAMPLE), "--devices", "nvme-dc", "--format", "json"])
    return printed.stdout.encode()


def _forecast(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = folder / "forecast.json"
    file.write_bytes(mutated(_printed_forecast(), draw))
    return lambda: read_forecasts(file)


def _validation(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = _file(folder, "validate.toml", SHIPPED / "validation.toml", draw)
    return lambda: validation.load(file)


def _prices(folder: Path, draw: random.Random) -> Callable[[], object]:
    file = _file(folder, "prices.toml", SHIPPED / "prices.toml", draw)
    return lambda: Prices.read(file)


KINDS = [
    Kind("study", _study),
    Kind("workload", _workload),
    Kind("pgbench", _pgbench),
    Kind("profile", _profile),
    Kind("requests", _requests),
    Kind("results", _results),
    Kind("recording", _recording),
    Kind("options", _options),
    Kind("validation", _validation),
    Kind("prices", _prices),
    Kind("forecast", _forecast),
]


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def hang(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(kind: Kind, seed: int) -> str | None:
    """Try one input; gives what went wrong, or ``None``."""
    with tempfile.TemporaryDirectory(prefix="tierwise-malformed-") as name:
        tried = kind.make(Path(name), random.Random(seed))
        peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began_s = time.monotonic()
        try:
            with (
                _limited(),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                tried()
        except TierwiseError as error:
            if "\n" in str(error):
                return f"more than one line: {error}"
        except SystemExit:
            pass
        except Hang:
            return f"hang over {LONGEST_S} s"
        except BaseException:
            frames = traceback.extract_tb(sys.exc_info()[2])[-4:]
            where = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames))
            return f"{traceback.format_exc().strip().splitlines()[-1]} | {where}"
        if time.monotonic() - began_s > LONGEST_S:
            return f"took {time.monotonic() - began_s:.1f} s"
        grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb) << 10
        return f"took {grown_bytes >> 20} MiB" if grown_bytes > MOST_BYTES else None


def main() -> None:
    """Try many, and print what went wrong with its seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="inputs of all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="of the first input")
    arguments = parser.parse_args()
    failures: Counter[str] = Counter()
    began_s = time.monotonic()
    for number in range(arguments.count):
        kind = KINDS[number % len(KINDS)]
        problem = attempt(kind, arguments.seed + number)
        if problem is not None:
            failures[f"{kind.name}: {problem}"[:200]] += 1
            print(f"{kind.name} {arguments.seed + number}: {problem}", flush=True)
    print(f"{arguments.count} inputs, {failures.total()} failures, {time.monotonic() - began_s:.0f} s")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
