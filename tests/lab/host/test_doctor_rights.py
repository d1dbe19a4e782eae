"""What the doctor says on a machine without FUSE, and in a container that may not mount."""

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


def test_a_container_without_the_right_to_mount_is_told_so() -> None:
    script = (
        "from tierwise.host.doctor import check_machine, failed_emulation_checks\n"
        "for check in failed_emulation_checks(check_machine()): print(check.name, check.detail, check.fix)"
    )
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "mounts Operation not permitted" in done.stdout and "--privileged" in done.stdout
