"""kill -9 during work, and ``tierwise clean`` after it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from checks.studies import STUDY
from checks.tools import left_behind, tierwise, until, work_folder


def killed_study() -> None:
    """A study with a server, disks and a limit, killed once its disks are up and once while it measures."""
    folder = work_folder("killed")
    file = folder / "study.toml"
    file.write_text(STUDY.format(engine="postgres", memory="256M", workload="single_commit"), "utf-8")
    study: list[str | Path] = ["study", "run", file, "--output", folder / "results"]
    killed = [_killed(study, "disk", wait_s) for wait_s in (0, 20)]
    print(f"{killed} things left by kill -9; clean left none")


def killed_recording() -> None:
    """A recording that was killed leaves no tracing."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    recording: list[str | Path] = [
        "record",
        "-o",
        work_folder("killed-recording") / "of",
        "--rules",
        "sqlite",
        "--duration",
        "60s",
    ]
    print(f"{_killed([*recording, '--', *sleeper], 'tracing', 3)} things left by kill -9; clean left none")


def _killed(command: list[str | Path], kind: str, wait_s: float) -> int:
    """Kill tierwise some time after an entry of the ledger, then clean; return the leftovers before that."""
    null = subprocess.DEVNULL
    with subprocess.Popen(["tierwise", *map(str, command)], stdin=null, stdout=null, stderr=null) as process:
        until(lambda: process.poll() is not None or list(Path("/run/tierwise").glob(f"{kind}-*.json")))
        time.sleep(wait_s)
        process.kill()
    before = left_behind()
    assert before, "it had ended before it was killed"
    tierwise("clean")
    assert not left_behind(), left_behind()
    return len(before)


CHECKS = [killed_study, killed_recording]
