"""Two hosts on this machine: network namespaces, with a Dask worker each, joined to a scheduler here."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_QUIET = ["--no-dashboard", "--no-nanny"]


@dataclass
class Lab:
    """A scheduler and its workers, by name."""

    address: str
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)


@contextmanager
def lab(home: Path, run_dirs: dict[str, Path], **environment: str) -> Iterator[Lab]:
    """A worker for each name, with a ledger of its own; all end with the block, and so do the namespaces."""
    file = home / "scheduler.json"
    with ExitStack() as undo:
        command = ["distributed.cli.dask_scheduler", "--host", "0.0.0.0", "--port", "0", "--no-dashboard"]
        undo.enter_context(_process([sys.executable, "-m", *command, "--scheduler-file", str(file)], home))
        _await(lambda: file.exists() and file.read_text().endswith("}"))  # there before its text is
        port = json.loads(file.read_text())["address"].rpartition(":")[2]
        lab = Lab(f"tcp://127.0.0.1:{port}")
        for name, run_dir in run_dirs.items():
            holder = undo.enter_context(_process(["unshare", "--net", "sleep", "1000"], home))
            here, there = _joined(holder.pid)
            own = [f"tcp://{here}:{port}", "--host", there, "--name", name, "--nthreads", "1"]
            lab_options = ["--resources", "tierwise-lab=1", *_QUIET]
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", *own, *lab_options]
            variables = {"TIERWISE_RUN_DIR": str(run_dir), **environment}
            enter = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
            lab.workers[name] = undo.enter_context(_process([*enter, *worker], home, **variables))
        yield lab


def _joined(pid: int) -> tuple[str, str]:
    """Join the namespace of a process to this one; addresses here and there. Both end with the namespace."""
    _await(lambda: Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink())
    for number in random.sample(range(256), 256):  # the kernel refuses one that another test has
        link = f"twhost{number}"
        added = f"ip link add {link} type veth peer name eth0 netns {pid}"
        if subprocess.run(added.split(), check=False, capture_output=True).returncode == 0:
            break
    else:
        raise AssertionError(f"no interface could be made by: {added}")
    here, there = f"10.213.{number}.1", f"10.213.{number}.2"
    for command in (
        f"ip address add {here}/30 dev {link}",
        f"ip link set {link} up",
        f"nsenter --net=/proc/{pid}/ns/net ip address add {there}/30 dev eth0",
        f"nsenter --net=/proc/{pid}/ns/net ip link set eth0 up",
        f"nsenter --net=/proc/{pid}/ns/net ip link set lo up",
    ):
        subprocess.run(command.split(), check=True, capture_output=True)
    return here, there


@contextmanager
def _process(command: list[str], home: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    with (home / "log").open("ab") as log:
        environment = {**os.environ, "DASK_TEMPORARY_DIRECTORY": str(home), **variables}
        process = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(condition: object) -> None:
    deadline = time.monotonic() + 60
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)
