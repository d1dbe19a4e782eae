"""A machine without FUSE, as a mount namespace in which /dev holds none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_doctor_misses_it(open_path: Path) -> None:
    script = f"""
        mkdir {open_path}/dev && cp -a /dev/null /dev/urandom /dev/shm {open_path}/dev
        mount --bind {open_path}/dev /dev && mkdir -p /dev/shm && mount -t tmpfs none /dev/shm
        exec {sys.executable} -m tierwise doctor --format json
    """
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-ec", script], capture_output=True, text=True, check=False
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert not checks["FUSE"]["ok"] and checks["FUSE"]["emulation"], done.stderr
