"""Runs the checks inside a guest, each in its own process, and writes a line of JSON for each.

``python3 guest.py [MODULE …]`` runs every function of ``CHECKS`` in the modules of ``checks``;
``python3 guest.py --one MODULE FUNCTION`` runs one of them here.
"""

from __future__ import annotations

import importlib
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

LIMIT_S = 900
HERE = Path(__file__).parent
REPORT = Path("/dev/ttyS1")


def main(modules: list[str]) -> None:
    """Run all checks of these modules, or of all."""
    known = sorted(path.stem for path in (HERE / "checks").glob("[a-z]*.py") if path.stem != "tools")
    with REPORT.open("w", encoding="utf-8") as report:
        tell(report, "kernel", True, 0, f"{platform.release()}, {cgroup_versions()}")
        for module in modules or known:
            for check in importlib.import_module(f"checks.{module}").CHECKS:
                run(report, module, check.__name__)
        tell(report, "end", True, time.monotonic(), "")


def run(report: TextIO, module: str, function: str) -> None:
    """Run one check; leftovers are cleaned up and reported as a separate fault."""
    started = time.monotonic()
    command = [sys.executable, __file__, "--one", module, function]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        ok, output = done.returncode == 0, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        ok, output = False, f"not done in {LIMIT_S} s; {error.stdout!r} {error.stderr!r}"
    print(output, flush=True)
    lines = output.strip().splitlines() or [""]
    tell(
        report,
        f"{module}.{function}",
        ok,
        time.monotonic() - started,
        lines[-1] if ok else " | ".join(lines[-25:]),
    )


def tell(report: TextIO, check: str, ok: bool, seconds: float, detail: str) -> None:
    """Write one line of the report."""
    line = {"check": check, "ok": ok, "seconds": round(seconds, 1), "detail": detail}
    report.write(json.dumps(line) + "\n")
    report.flush()


def cgroup_versions() -> str:
    """Mounted versions of control groups."""
    lines = Path("/proc/mounts").read_text("utf-8").splitlines()
    return ", ".join(sorted({line.split()[2] for line in lines if line.split()[2].startswith("cgroup")}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        getattr(importlib.import_module(f"checks.{sys.argv[2]}"), sys.argv[3])()
    else:
        main(sys.argv[1:])
