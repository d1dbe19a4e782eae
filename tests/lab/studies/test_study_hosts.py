"""A study on two hosts, which are network namespaces."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.lab_hosts import lab
from support.tiny_study import HOSTED
from tierwise.cli import app
from tierwise.cluster.dask_executor import connect_to_dask
from tierwise.host import clean, ledger
from tierwise.lab.studies.runner import dask_hosts
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.results import RunResult


def hosts_of(results: list[RunResult]) -> dict[int, list[str]]:
    groups = defaultdict(list)
    for result in results:
        assert result.host
        groups[result.repeat].append(result.host.name)
    return groups


@pytest.fixture
def two_run_dirs(open_path: Path) -> Iterator[dict[str, Path]]:
    """A ledger for each host; what a killed worker left is cleaned."""
    open_paths = {name: open_path / name for name in ("east", "west")}
    for path in open_paths.values():
        path.mkdir()
    yield open_paths
    with pytest.MonkeyPatch.context() as patch:
        for path in open_paths.values():
            patch.setenv("TIERWISE_RUN_DIR", str(path))
            clean.clean()
            assert not ledger.entries()


@pytest.mark.skipif(
    find_spec("distributed") is None or os.geteuid() != 0 or not shutil.which("ip"),
    reason="needs the extra cluster, root and iproute2",
)
def test_two_studies_on_two_hosts_and_a_death(
    two_run_dirs: dict[str, Path],
    own: Path,
    tmp_path: Path,
    run_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As network namespaces. In the second study one worker is killed in its second run."""
    toml = tmp_path / "hosted.toml"
    toml.write_text(HOSTED.format(path=own, repeats=4, transactions=300, workload="single_commit"))
    with lab(tmp_path, two_run_dirs) as hosts:
        command = ["study", "run", str(toml), "--hosts", hosts.address, "--output"]
        with connect_to_dask(hosts.address, None) as client:
            client.wait_for_workers(2, timeout=60)
        result = CliRunner().invoke(app, [*command, str(tmp_path / "refused")])
        assert "are on one machine" in str(result.exception)
        assert not (tmp_path / "refused").exists()
        monkeypatch.setattr(dask_hosts, "_BOOT_ID", Path("/proc/self/net/fib_trie"))  # has its addresses
        result = CliRunner().invoke(app, [*command, str(tmp_path / "first")])
        assert result.exit_code == 0, result.output
        first = runner.finished_runs_in(tmp_path / "first/hosted/latest")
        blocks = hosts_of(first)
        assert sorted(blocks) == [0, 1, 2, 3] and all(len(set(names)) == 1 for names in blocks.values())
        assert {names[0].rpartition("/")[2] for names in blocks.values()} == {"east", "west"}
        assert "all hosts" in result.output, "the table of hosts"

        killer = threading.Thread(target=_kill_in_a_run, args=(two_run_dirs["west"], hosts.workers["west"]))
        killer.start()
        result = CliRunner().invoke(app, [*command, str(tmp_path / "second"), "--set", "transactions=3000"])
        killer.join()
        assert result.exit_code == 0, result.output
        blocks = hosts_of(runner.finished_runs_in(tmp_path / "second/hosted/latest"))
        assert all(len(set(names)) == 1 for names in blocks.values())
        assert sum(len(names) == 2 for names in blocks.values()) == 4
        finished = [names[0].rpartition("/")[2] for names in blocks.values() if len(names) == 2]
        assert finished.count("east") >= 3


def _kill_in_a_run(run_dir: Path, worker: object) -> None:
    """Kill a worker as soon as it holds something of the machine."""
    deadline = time.monotonic() + 60
    while not list(run_dir.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGKILL)  # type: ignore[attr-defined]
