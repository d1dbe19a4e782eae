"""The work of a fleet on Dask and on disk: the same rows, deaths of workers and of the client, resumption."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from support.fleet_command import invoke
from support.fleet_factory import EXAMPLES, GP3, NVME, write_recordings
from tierwise.advise import AdviceOptions
from tierwise.cluster import dask_executor
from tierwise.cluster.dask_executor import DaskExecutor, connect_to_dask, open_executor
from tierwise.fleet.fleet_advice import advise_fleet
from tierwise.fleet.fleet_databases import find_recordings
from tierwise.host import ledger
from tierwise.host.clean import clean
from tierwise.model.errors import FailedCheckError, HostError, TierwiseError
from tierwise.model.executor import Executor, LostTask, ThreadExecutor, usable_processors

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("cryptography", "distributed", "pyarrow", "scipy")),
    reason="the extra cluster is not installed",
)
SEEDS = 2


@pytest.fixture(scope="module")
def listening_before() -> set[tuple[str, int]]:
    """Addresses that this program listened on before the cluster: a server of another module may run yet."""
    return listening()


@pytest.fixture(scope="module")
def cluster(listening_before: set[tuple[str, int]]) -> Iterator[Executor]:
    with open_executor("local", 2) as pool:
        yield pool


def listening() -> set[tuple[str, int]]:
    """Addresses and ports that this process and its descendants listen on."""
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in tree(os.getpid())
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def tree(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two looks
        return False


def ignores(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN


def dies(task: tuple[int, Path]) -> int:
    """Ends its worker: number 1 the first time, number 2 each time."""
    number, marks = task
    if number == 2 or (number == 1 and not (marks / "died").exists()):
        (marks / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * number


def share(_: int) -> int:
    return usable_processors()


def refuse(_: int) -> int:
    raise FailedCheckError("a problem", "a fix")


def test_a_cluster_gives_the_rows_of_threads(cluster: Executor, tmp_path: Path) -> None:
    tasks, _ = find_recordings([f"{write_recordings(tmp_path / 'recordings')}/*"])
    own = tmp_path / "own.toml"
    own.write_text(f'like = "{NVME}"\n[price]\nusd = 100\n[source]\nprice = "a list of prices"\n')
    asked = AdviceOptions([str(own), GP3])
    tally: list[tuple[int, int]] = []
    options = {"seeds": SEEDS, "progress": lambda done, of: tally.append((done, of))}
    here = advise_fleet(tasks, asked, ThreadExecutor(), **options)
    own.unlink()  # this process has read it; the workers get its text
    there = advise_fleet(tasks, asked, cluster, **options)
    assert here == there and len(here.databases) == 2 and len(here.left_out) == 2
    assert tally == [(done, 4) for done in range(5)] * 2


def test_only_this_program_can_reach_a_local_cluster(
    cluster: Executor, listening_before: set[tuple[str, int]]
) -> None:
    of_the_cluster = listening() - listening_before
    assert len(of_the_cluster) >= 3 and {address for address, _ in of_the_cluster} == {"127.0.0.1"}
    assert isinstance(cluster, DaskExecutor)
    address = cluster._client.scheduler.address
    assert address.startswith("tls://")
    stranger = f"from distributed import Client; Client({address!r}, timeout=3)"
    done = subprocess.run([sys.executable, "-c", stranger], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "TLS" in done.stderr


def test_a_task_uses_one_processor_of_its_worker(cluster: Executor) -> None:
    assert dict(cluster.run(share, [0, 1])) == {0: 1, 1: 1}


def test_a_dead_worker_costs_no_result(cluster: Executor, tmp_path: Path) -> None:
    completed = dict(cluster.run(dies, [(number, tmp_path) for number in range(4)]))
    lost = completed.pop(2)
    assert isinstance(lost, LostTask) and "died" in lost.problem
    assert completed == {0: 0, 1: 10, 3: 30}


def test_a_worker_that_its_nanny_gave_up_is_replaced() -> None:
    soon = import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": "1s"})
    with (
        soon,
        dask_executor._local_cluster(1) as local,
        connect_to_dask(local.scheduler_address, local.security) as client,
    ):
        (nanny,) = local.workers.values()
        local.sync(nanny.close)
        assert dict(DaskExecutor(client).run(share, [0])) == {0: 1}


def test_workers_of_a_local_cluster_leave_ctrl_c_to_the_command(cluster: Executor) -> None:
    assert list(cluster.run(ignores, [signal.SIGINT])) == [(0, True)]


def test_a_local_cluster_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_executor("local", 1) as pool:
        assert dict(pool.run(share, [0])) == {0: 1}
        assert [path.name.split("-")[0] for path in tmp_path.iterdir()] == ["tierwise"]
    assert not list(tmp_path.iterdir())


def test_errors_of_a_worker_are_those_of_the_work(cluster: Executor) -> None:
    with pytest.raises(FailedCheckError, match="a problem: a fix"):
        list(cluster.run(refuse, [0]))
    for error in (TierwiseError("a", "b"), HostError("a", "b")):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.message, copy.fix, str(copy)) == (type(error), "a", "b", "a: b")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--scheduler", "tcp://127.0.0.1:9"], "--scheduler: tcp://127.0.0.1:9 does not answer"),
        (["--scheduler", "here"], "--scheduler: 'here' is no address"),
        (["--scheduler", "tcp://127.0.0.1:9", "--workers", "2"], "--workers: the scheduler has its own"),
        (["--results", "/proc/none"], "--results: /proc/none"),
    ],
)
def test_options_of_a_cluster_that_are_wrong(
    arguments: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_TIMEOUT_S", 2)
    import_module("distributed")  # takes seconds of its own
    begin_s = time.monotonic()
    with pytest.raises(TierwiseError, match=named):
        invoke(str(EXAMPLES / "order-entry"), "--devices", "nvme-dc", *arguments)
    assert time.monotonic() - begin_s < 25, "Dask itself waits for 30 s"


def test_a_run_that_was_killed_is_resumed(tmp_path: Path, run_dir: Path) -> None:
    """kill -9 of a worker, then of the client: no process is left, no row is missing or there twice."""
    recordings, kept = tmp_path / "recordings", tmp_path / "kept"
    for number in range(8):
        shutil.copytree(EXAMPLES / "keyed-update", recordings / f"shop-{number}")
    asked = [f"{recordings}/*", "--devices", "nvme-dc", "--seeds", str(SEEDS), "--format", "json"]
    command = [sys.executable, "-m", "tierwise", "fleet", "advise", *asked, "--workers", "2"]
    client = subprocess.Popen([*command, "--results", kept], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (parts := list(kept.glob("question=*/part-*"))) and time.monotonic() < deadline:
        time.sleep(0.01)
    processes = tree(client.pid)
    for process in processes:
        if "spawn_main" in " ".join(process.cmdline()):
            process.kill()
            break
    client.kill()
    assert client.wait() == -signal.SIGKILL and parts
    deadline = time.monotonic() + 60
    while any(is_alive(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [process for process in processes if is_alive(process)]
    before = {file: file.read_bytes() for file in parts}
    resumed = invoke(*asked, "--results", str(kept))
    assert all(file.read_bytes() == content for file, content in before.items())
    from pyarrow import dataset

    names = dataset.dataset(kept, partitioning="hive").to_table(["name"])["name"].to_pylist()
    assert sorted(names) == [f"shop-{number}" for number in range(8)]
    assert json.loads(resumed) == json.loads(invoke(*asked))
    assert clean() and not ledger.entries(), "the directory of the workers"


def test_a_scheduler_elsewhere_is_used_and_its_end_is_named(tmp_path: Path) -> None:
    recordings = write_recordings(tmp_path / "recordings")
    file, quiet = tmp_path / "scheduler.json", ["--no-dashboard", "--host", "127.0.0.1"]
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> None:
        command = [sys.executable, "-m", *arguments]
        # Dask may keep the variable of a local cluster.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
        environment["DASK_TEMPORARY_DIRECTORY"] = str(tmp_path)
        started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL))

    try:
        start("distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(file), *quiet)
        start("distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-nanny", *quiet)
        deadline = time.monotonic() + 60
        # The file is there before its text is.
        while not (file.exists() and file.read_text().endswith("}")) and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        asked = [f"{recordings}/*-*", "--devices", "nvme-dc", "--seeds", str(SEEDS), "--format", "json"]
        assert json.loads(invoke(*asked, "--scheduler", address)) == json.loads(invoke(*asked))
        (tmp_path / "tierwise.py").write_text("")  # the module of a worker that lacks the package
        start("distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-nanny", *quiet)
        with connect_to_dask(address, None) as client:
            client.wait_for_workers(2, timeout=60)
        with (
            pytest.raises(HostError, match=r"--scheduler: worker \S+ lacks tierwise"),
            open_executor(address, None),
        ):
            pass
        started.pop().kill()
        with open_executor(address, None) as there:
            with pytest.raises(HostError, match="on scheduler and workers"):
                list(there.run(share, [0]))  # a function of this file, which they cannot import
            with pytest.raises(TierwiseError, match="the scheduler ended"):
                for number, _ in there.run(time.sleep, [0.05] * 2000):
                    if number == 2:
                        started[0].kill()
    finally:
        for process in started:
            process.kill()
            process.wait()


_INTERRUPTED_START = """
import asyncio, os, signal, distributed
from tierwise.cluster.dask_executor import open_executor
start = distributed.Nanny.start
async def interrupted(self):
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(1)
    return await start(self)
distributed.Nanny.start = interrupted
try:
    with open_executor("local", 1):
        pass
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_local_cluster_that_is_interrupted_while_it_starts_ends_without_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERWISE_RUN_DIR", str(tmp_path / "run"))
    command = [sys.executable, "-c", _INTERRUPTED_START]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
    assert not list((tmp_path / "run").glob("*.json"))
