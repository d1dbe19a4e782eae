"""Recording beside programs that use all cores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.committer import SQLITE
from tierwise import _core
from tierwise.recording import Recording


@pytest.mark.skipif(_core.recording_impossible() is not None, reason="nothing can be recorded here")
def test_a_recording_ends_where_no_core_is_ever_idle(tmp_path: Path, run_dir: Path) -> None:
    """Bursts that are too large to wait are decoded beside programs that use all cores."""
    work = "for _ in range(250): pass"  # some 700,000 events/s on a fast host; the bar is 300,000
    read = f"import os\nf = os.open('/dev/zero', 0)\nwhile True:\n os.read(f, 1)\n {work}"
    script = f'for core in $(seq {os.cpu_count()}); do "$0" -c "$1" & done; wait'
    command = [sys.executable, "-m", "tierwise", "-q", "record", "--rules", SQLITE, "--duty", "1"]
    with subprocess.Popen(["sh", "-c", script, sys.executable, read], start_new_session=True) as busy:
        try:
            command += ["--duration", "4s", "-o", str(tmp_path / "recording"), "--pid", str(busy.pid)]
            subprocess.run(command, timeout=240, check=True, capture_output=True)
        finally:
            os.killpg(busy.pid, signal.SIGKILL)
    about = Recording.open(tmp_path / "recording", whole=True).about
    assert about.losses.lost_events == 0 and about.losses.recorded_events > 1_000_000
