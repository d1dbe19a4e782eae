"""Client programs that others wrote, each for a moment, recorded and measured."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.client_cases import CASES, spec_of
from support.validation_factory import Watcher
from tierwise.host import cpu, ledger
from tierwise.lab.validation.servers.case_database import CaseServer
from tierwise.lab.validation.slot_rows import recording_folder_of
from tierwise.lab.validation.validation_case import cases_to_run
from tierwise.lab.validation.validation_round import run_round
from tierwise.recording import Recording


@pytest.fixture(autouse=True)
def unprobed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.lab.validation.validation_round._own_profile", lambda *_: None)
    # Other tests keep the processors busy meanwhile.
    monkeypatch.setattr("tierwise.lab.validation.case_in_slots._MOST_WAIT_S", 0.0)


@pytest.mark.parametrize("client", CASES)
def test_a_client_is_measured_and_recorded(client: str, open_path: Path, run_dir: Path) -> None:
    more = ['placements = ["other"]'] if client in {"pgbench", "sqlite-shell"} else []
    spec = spec_of(open_path, client, *more)
    cases, left_out = cases_to_run(spec)
    if left_out:
        pytest.skip("; ".join(left_out.values()))
    folder = open_path / "round"
    watcher = Watcher()
    run_round(spec, cases, folder, watcher, seed=1)
    assert not watcher.skipped
    assert {row.status for row in watcher.rows} == {"ok"}, [row.problems for row in watcher.rows]
    counted = Counter((row.kind, row.placement) for row in watcher.rows)
    placement = CASES[client][2]
    expected = {("slot", placement): 2, ("beside", placement): 2, ("recorded", placement): 1}
    assert counted == expected | ({("slot", "other"): 2} if more else {})
    for row in watcher.rows:
        assert row.rate_per_s
        assert row.laps or row.transactions
        assert row.idle_cpu_share is not None
    recorded = next(row for row in watcher.rows if row.kind == "recorded")
    recording = Recording.open(recording_folder_of(folder, recorded))
    assert recording.about.engine == recorded.engine
    assert recording.about.transactions is None, "they are to be found in the events"
    assert not list((folder / "own").iterdir()), "nothing is left behind"
    assert not (folder / "templates").exists()


def test_a_server_is_private_and_limited_and_its_log_is_where_the_placement_says(
    open_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(open_path, "pgbench", 'memory = "256M"')
    cases, left_out = cases_to_run(spec)
    if left_out:
        pytest.skip("; ".join(left_out.values()))
    seen: dict[str, Any] = {}
    stop = CaseServer.stop

    def looks(self: CaseServer) -> None:
        if self.places and self.pid is not None:
            log = (self.data / "pg_wal").resolve()
            groups = set()
            for pid in cpu.process_tree(self.pid):
                with contextlib.suppress(OSError):  # some end meanwhile
                    groups.add(Path(f"/proc/{pid}/cgroup").read_text("ascii"))
            seen["limited"] = bool(groups) and all("memory-" in group for group in groups)
            seen["log"] = log.stat().st_dev != self.data.stat().st_dev
            seen["modes"] = {stat.S_IMODE(path.stat().st_mode) for path in (log, self.data, self.home)}
            seen["users"] = {path.stat().st_uid for path in (log, self.data)}
            seen["users"] |= {path.stat().st_uid for path in (self.home / "latencies").glob("*")}
        stop(self)

    monkeypatch.setattr(CaseServer, "stop", looks)
    run_round(spec, cases, open_path / "round", Watcher(), seed=1)
    assert seen["log"]
    assert seen["limited"]
    assert not ledger.entries("limit")
    assert seen["modes"] == {0o700}
    assert os.getuid() not in seen["users"]
