"""What the doctor finds, and what it says to do."""

from __future__ import annotations

import json
import os

import pytest

from support.commands import tierwise
from tierwise.host import doctor, mounts


@pytest.fixture(autouse=True)
def mounts_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself tries a mount in a child; tests/lab/host/test_doctor_rights.py runs it."""
    monkeypatch.setattr(mounts, "mount_obstacle", lambda: None)


def named(name: str) -> doctor.MachineCheck:
    return next(check for check in doctor.check_machine() if check.name == name)


def test_every_check_says_what_it_found_and_how_to_mend_it() -> None:
    for check in doctor.check_machine():
        assert check.detail, check
        assert check.ok or check.fix, check


def test_without_root_nothing_can_be_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in [check.name for check in doctor.failed_emulation_checks(doctor.check_machine())]
    assert "user id 1000" in named("root").detail


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    check = named("mkfs.ext4")
    assert not check.ok and check.emulation
    assert "e2fsprogs" in check.fix


def test_json_has_every_check() -> None:
    done = tierwise("doctor", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [check["name"] for check in json.loads(done.stdout)["checks"]] == [
        check.name for check in doctor.check_machine()
    ]
