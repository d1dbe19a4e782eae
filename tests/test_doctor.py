"""What the doctor finds, and what it says to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tierwise.host import doctor


def named(name: str) -> doctor.Check:
    return next(check for check in doctor.examine() if check.name == name)


def test_every_check_says_what_it_found_and_how_to_mend_it() -> None:
    for check in doctor.examine():
        assert check.detail, check
        assert check.ok or check.fix, check


def test_without_root_nothing_can_be_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in [check.name for check in doctor.missing_for_emulation(doctor.examine())]
    assert "user id 1000" in named("root").detail


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    check = named("mkfs.ext4")
    assert not check.ok and check.emulation
    assert "e2fsprogs" in check.fix


def test_json_has_every_check() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tierwise", "doctor", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [check["name"] for check in json.loads(done.stdout)["checks"]] == [
        check.name for check in doctor.examine()
    ]


@pytest.mark.privileged
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


@pytest.mark.privileged
def test_a_container_without_the_right_to_mount_is_told_so() -> None:
    script = (
        "from tierwise.host.doctor import examine, missing_for_emulation\n"
        "for check in missing_for_emulation(examine()): print(check.name, check.detail, check.fix)"
    )
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "mounts Operation not permitted" in done.stdout and "--privileged" in done.stdout
    assert named("mounts").ok
