"""The bars of a large load, at a small scale: 200 clients, no row and no record lost, steady memory."""

from __future__ import annotations

import subprocess
import sys

from support.paths import ROOT

PROGRAM = ROOT / "benchmarks" / "load_limit.py"


def test_200_clients_lose_nothing() -> None:
    command = [sys.executable, str(PROGRAM), "--rows=20000", "--clients=200", "--seconds=1"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loaded 20000 rows" in done.stdout
    assert "200 clients" in done.stdout
    assert "no row and no record lost" in done.stdout


def test_too_little_space_is_said_before_anything_is_made() -> None:
    command = [sys.executable, str(PROGRAM), f"--rows={10**12}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "give another --place" in done.stderr
