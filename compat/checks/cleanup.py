"""kill -9 at work, and ``tierwise clean`` after it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from checks.studies import STUDY
from checks.tools import left_behind, tierwise, work_folder


def killed_study() -> None:
    """A study with a server, disks and a limit, killed once its disks are up and once while it measures."""
    folder = work_folder("killed")
    file = folder / "study.toml"
    file.write_text(STUDY.format(engine="postgres", memory="256M", workload="single_commit"), "utf-8")
    found = []
    for wait_s in (0, 20):
        with subprocess.Popen(
            ["tierwise", "run", str(file), "--out", str(folder / "results")], **_QUIET
        ) as study:
            while study.poll() is None and not list(Path("/run/tierwise").glob("disk-*.json")):
                time.sleep(0.1)
            time.sleep(wait_s)
            study.kill()
        before = left_behind()
        assert before, "the study had ended before it was killed"
        tierwise("clean")
        assert not left_behind(), left_behind()
        found.append(f"{len(before)} things left by kill -9 after {wait_s} s")
    print(f"{', '.join(found)}; clean left none")


def killed_recording() -> None:
    """A recording that was killed leaves no tracing."""
    folder = work_folder("killed-recording")
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    command = [
        "tierwise",
        "record",
        "-o",
        str(folder / "of"),
        "--rules",
        "sqlite",
        "--for",
        "60",
        "--",
        *sleeper,
    ]
    with subprocess.Popen(command, **_QUIET) as recorder:
        while recorder.poll() is None and not list(Path("/run/tierwise").glob("tracing-*.json")):
            time.sleep(0.1)
        time.sleep(3)
        recorder.kill()
    assert left_behind(), "the recording had ended before it was killed"
    tierwise("clean")
    assert not left_behind(), left_behind()
    print("nothing left")


_QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
CHECKS = [killed_study, killed_recording]
