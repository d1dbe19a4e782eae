"""``tierwise demo`` on a machine that cannot emulate devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import tierwise
from tierwise.host.doctor import MachineCheck
from tierwise.lab import studies
from tierwise.lab.cli import study

pytestmark = pytest.mark.usefixtures("run_dir")

STUDY = """
name = "tiny"
question = "?"
engines = ["sqlite"]
workload = "single_commit"
clients = 2
transactions = 50
repeats = 2
baseline = "slow"
[devices.slow]
profile = "hdd-7k2"
[devices.fast]
profile = "ssd-nvme-dc"
[placements.slow]
default = "slow"
[placements.fast]
log = "fast"
default = "slow"
"""


def test_without_fuse_it_runs_on_the_machines_own_storage(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = MachineCheck("FUSE", False, "/dev/fuse is missing", "modprobe fuse", emulation=True)
    monkeypatch.setattr(study, "failed_emulation_checks", lambda _: [missing])
    monkeypatch.setattr(study, "DEMO", ["tiny"])
    tiny = studies.parse_study(STUDY, "tiny.toml")
    monkeypatch.setattr(studies, "load_study", lambda _: tiny)
    done = tierwise("demo", "--output", own / "results", "--seed", "1", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert "Cannot emulate devices here (missing: FUSE" in done.stdout.splitlines()[0]
    assert "Every placement used the same devices" in " ".join(done.stdout.split())
    assert list((own / "results").glob("*/latest/results.jsonl"))
