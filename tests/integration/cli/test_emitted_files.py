"""Files that ``advise --emit`` writes, read by the programs that they are for, where these are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.commands import tierwise
from support.paths import RECORDINGS

EMITTED = ("order-entry", "keyed-update")


def emitted(emit: str, name: str, to: Path) -> Path:
    asked = ["advise", str(RECORDINGS / name), "--devices", "nvme-dc,gp3,io2", "--seeds", "2"]
    to.write_text(tierwise(*asked, "--emit", emit).stdout, "utf-8")
    assert to.stat().st_size
    return to


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("name", EMITTED)
def test_fio_reads_its_jobs(name: str, tmp_path: Path) -> None:
    jobs = emitted("fio", name, tmp_path / "jobs.fio")

    def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DEVICE_DIRECTORY": str(directory)}
        command = ["fio", *options, str(jobs)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    read = run(tmp_path, "--parse-only")
    assert read.returncode == 0, read.stdout + read.stderr
    assert not (tmp_path / "tierwise-fio.test").exists()
    for taken in (jobs, Path("/dev/null")):  # fio wrote to a database's file or device that was named
        done = run(taken)
        assert done.returncode != 0 and "is not a directory" in done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("ansible-playbook") is None, reason="Ansible is not installed")
def test_ansible_reads_its_playbook(tmp_path: Path) -> None:
    book = emitted("ansible", "order-entry", tmp_path / "move.yml")
    command = ["ansible-playbook", "--syntax-check", "-i", "database,", str(book)]
    read = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert read.returncode == 0, read.stdout + read.stderr
