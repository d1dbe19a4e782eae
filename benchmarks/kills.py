"""Kill ``study run``, ``record``, ``disk`` and ``device probe`` at random: is anything left, or a run lost?

``python benchmarks/kills.py --count 1000`` takes an hour on two cores. It needs root, and nothing else of
tierwise's may run meanwhile. Each kill is a line of ``--out``; called again, it goes on there. After each
kill tierwise is started once, as a user would. Then there must be no entry in the ledger, process, mount,
loop device, control group or temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tierwise.host import block_devices, cgroups, ledger, mounts

COMMANDS = ("run", "record", "disk", "probe")
LATEST_S = {"run": 6.0, "record": 4.0, "disk": 1.5, "probe": 3.0}
STUDY = """
name = "kills"
question = "?"
engines = ["{engine}"]
workload = "single_commit"
scale = 0.1
clients = 2
seconds = 0.5
repeats = 30
baseline = "a"
[devices.d]
profile = "ssd-sata-dc"
[placements.a]
default = "d"
[sizes]
log = "256M"
data = "256M"
index = "64M"
temp = "64M"
system = "256M"
archive = "64M"
doublewrite = "64M"
"""
SLEEPER = "import time; time.sleep(60)"


def command_of(what: str, folder: Path, draw: random.Random) -> list[str]:
    """A command that runs longer than the time until its kill."""
    tierwise = [sys.executable, "-m", "tierwise"]
    if what == "run":
        study = folder / "kills.toml"
        study.write_text(STUDY.format(engine=draw.choice(["postgres", "sqlite"])), "utf-8")
        return [*tierwise, "study", "run", str(study), "--output", str(folder / "results")]
    if what == "record":
        out = folder / f"recording-{draw.getrandbits(32)}"
        command = ["--", sys.executable, "-c", SLEEPER]
        return [*tierwise, "record", "-o", str(out), "--rules", "sqlite", "--duration", "30s", *command]
    if what == "disk":
        size = ["--profile", "ssd-sata-dc", "--size", "256M"]
        return [*tierwise, "disk", "up", "kills", *size, "--mount", str(folder / "mount")]
    return [*tierwise, "device", "probe", str(folder), "--size", "256M"]


def left(run_dir: Path, folder: Path, before: set[str]) -> list[str]:
    """Leftovers of a killed command."""
    texts = [f"entry {entry.kind} {entry.name}" for entry in ledger.entries()]
    texts += [f"mount {mount.point}" for mount in mounts.mounts() if mount.point.is_relative_to(folder)]
    texts += [f"loop {device}" for device in block_devices.loop_devices_below(run_dir)]
    texts += [f"device {device}" for device in Path("/dev").glob("ublk[bc]*")]
    token = f"TIERWISE_RUN_DIR={run_dir}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) != os.getpid():
            try:
                if token in (process / "environ").read_bytes().split(b"\0"):
                    texts.append(f"process {process.name} {(process / 'comm').read_text().strip()}")
            except OSError:
                continue
    return texts + sorted(taken() - before)


def taken() -> set[str]:
    """tierwise's control groups, and its directories in the system's temporary directory and in memory."""
    kinds = ("*-home-*", "tierwise-*", "postgres-shared-*")
    places = (Path(tempfile.gettempdir()), Path("/dev/shm"))
    groups = (f"{cgroups.PARENT}/*/", f"*/{cgroups.PARENT}/*/")
    texts = {f"directory {path}" for place in places for kind in kinds for path in place.glob(kind)}
    return texts | {f"group {path}" for kind in groups for path in cgroups.ROOT.glob(kind)}


def finished_runs(folder: Path) -> set[str]:
    """Runs whose record is on disk."""
    texts = [file.read_text("utf-8") for file in folder.rglob("results.jsonl")]
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    return {json.loads(line)["run_id"] for line in lines if line.endswith("\n")}


def kill_once(what: str, number: int, run_dir: Path, folder: Path, how: signal.Signals) -> dict[str, object]:
    """Start a command, kill it, start tierwise once more, and list the leftovers."""
    draw = random.Random(number)
    before, runs = taken(), finished_runs(folder)
    with (folder / "said").open("wb") as output:
        process = subprocess.Popen(
            command_of(what, folder, draw), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    moment_s = draw.uniform(0, LATEST_S[what])
    time.sleep(moment_s)
    signals = _ended(process, how)
    if what == "disk":
        subprocess.run(
            [sys.executable, "-m", "tierwise", "disk", "down", "kills"], capture_output=True, check=False
        )
    cleaned = subprocess.run(
        [sys.executable, "-m", "tierwise", "clean"], capture_output=True, text=True, check=False
    )
    problems = left(run_dir, folder, before)
    if cleaned.returncode:
        problems.append(cleaned.stderr.strip()[-200:])
    if b"Traceback" in (folder / "said").read_bytes():
        problems.append("traceback")
    problems += [f"lost {run}" for run in runs - finished_runs(folder)]
    return {
        "number": number,
        "command": what,
        "moment_s": round(moment_s, 3),
        "signals": signals,
        "problems": problems,
    }


def _ended(process: subprocess.Popen[bytes], how: signal.Signals) -> int:
    """Wait for the end; return the number of signals sent.

    Python's startup may lose an interrupt in a callback of the import system: a user presses Ctrl-C again.
    """
    for number in (1, 2):
        process.send_signal(how)
        try:
            process.wait(timeout=60)
            return number
        except subprocess.TimeoutExpired:
            continue
    raise RuntimeError(f"{process.args!r} does not end")


def main() -> None:
    """Kill until the count is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--command", choices=COMMANDS, nargs="+", default=list(COMMANDS))
    parser.add_argument("--signal", choices=["KILL", "INT"], default="KILL")
    parser.add_argument("--out", type=Path, default=Path("results/kills.jsonl"))
    arguments = parser.parse_args()
    how = signal.Signals[f"SIG{arguments.signal}"]
    # A shell starts background jobs with SIGINT ignored, which the commands would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done = arguments.out.read_text("utf-8").splitlines() if arguments.out.exists() else []
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder, run_dir = Path(name), Path(name) / "run"
        folder.chmod(0o755)
        os.environ["TIERWISE_RUN_DIR"] = str(run_dir)
        for number in range(len(done), arguments.count):
            what = arguments.command[number % len(arguments.command)]
            outcome = kill_once(what, number, run_dir, folder, how)
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(outcome) + "\n")
            if outcome["problems"]:
                print(outcome, flush=True)
    rows = [json.loads(line) for line in arguments.out.read_text("utf-8").splitlines()]
    again = sum(row["signals"] > 1 for row in rows)
    wrong = Counter(row["command"] for row in rows if row["problems"])
    ends = f"{len(rows)} ends by SIG{arguments.signal}, {again} by a second one"
    print(f"{ends}: {wrong.total()} with something left {dict(wrong)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
