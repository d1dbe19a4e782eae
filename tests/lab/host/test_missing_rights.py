"""The demo on a machine without FUSE."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_machine_without_fuse_runs_the_demo_on_its_own_storage(open_path: Path) -> None:
    """In a mount namespace of its own, /dev holds no fuse; two runs are enough to see where data goes."""
    script = f"""
        mkdir {open_path}/dev && cp -a /dev/null /dev/urandom /dev/shm {open_path}/dev
        mount --bind {open_path}/dev /dev && mkdir -p /dev/shm && mount -t tmpfs none /dev/shm
        exec {sys.executable} -m tierwise demo --output {open_path}/results --seed 1 --repeats 1
    """
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-ec", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert "Cannot emulate devices here (missing: FUSE" in done.stdout.splitlines()[0]
    assert "Every placement used the same devices" in " ".join(done.stdout.split())


def test_a_container_without_the_right_to_mount_is_told_so() -> None:
    script = (
        "from tierwise.host.doctor import examine, missing_for_emulation\n"
        "for check in missing_for_emulation(examine()): print(check.name, check.detail, check.fix)"
    )
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "mounts Operation not permitted" in done.stdout and "--privileged" in done.stdout
