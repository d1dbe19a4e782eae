"""Bars of a fleet on a cluster: the same rows as threads, efficiency, memory, and the limits of a scheduler.

``python benchmarks/fleet_cluster.py [--recordings 1000]`` perturbs the recordings that ship and works out
their options. First, rounds with one worker and with two, in random order; then all recordings on two
workers with a scheduler in a process of its own, and the peak memory of each; some recordings also on
threads, whose rows must be the same.
Exit status 1 if a bar is missed.

``--simulated 64,512 [--task-s 2]`` instead runs that number of workers, many in a process, on a real
scheduler in a process of its own. Each task sleeps as long as a chunk of databases takes. Printed are the CPU
time of the scheduler and the share of time in which workers are busy, for chunks of several sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from perturbed import perturbed

from tierwise.advise import PaymentTerms
from tierwise.cluster.dask_executor import open_executor
from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, database_options
from tierwise.fleet.fleet_databases import find_recordings
from tierwise.model.executor import Executor, ThreadExecutor
from tierwise.predict import resolve_device
from tierwise.predict.model_error import ModelError

EXAMPLES = Path(__file__).parents[1] / "examples/recordings"
DEVICES = ("nvme-dc", "gp3", "io2")
EFFICIENCY_BAR = 0.9
WORKER_BAR_MB, SCHEDULER_BAR_MB = 500, 300
CHUNKS = (1, 4, 16)
TASKS_A_WORKER = 8
WORKERS_A_PROCESS = 64


def main() -> int:
    """Make, run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--recordings", type=int, default=1000)
    parser.add_argument("--compared", type=int, default=100, help="recordings that threads do too")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of one worker against two")
    parser.add_argument("--recordings-a-round", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--simulated", default="", help="numbers of workers, such as 64,512")
    parser.add_argument("--task-s", type=float, default=2.0, help="time that a simulated worker sleeps")
    parser.add_argument("--sleepers", nargs=2, metavar=("ADDRESS", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sleepers:
        _sleepers(options.sleepers[0], int(options.sleepers[1]))
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tierwise-fleet-") as folder:
        os.environ["DASK_TEMPORARY_DIRECTORY"] = folder  # of every process that is started
        if options.simulated:
            for workers in map(int, options.simulated.split(",")):
                _simulated(workers, options.task_s, Path(folder))
            return 0
        tasks = _tasks(Path(folder), max(options.recordings, options.recordings_a_round), options.seeds)
        print(f"{options.recordings} recordings, {', '.join(DEVICES)}, {options.seeds} seeds", flush=True)
        kept = _efficient(tasks[: options.recordings_a_round], options.rounds)
        return int(not (_large(tasks[: options.recordings], options.compared, Path(folder)) and kept))


def _tasks(folder: Path, count: int, seeds: int) -> list[DatabaseOptionsTask]:
    sources = sorted(EXAMPLES.glob("*/"))
    for number in range(count):
        perturbed(sources[number % len(sources)], folder / f"shop-{number:05}", number)
    tasks, _left_out = find_recordings([f"{folder}/shop-*"])
    devices = tuple(resolve_device(name).name for name in DEVICES)
    terms, error = PaymentTerms(), ModelError.read()
    return [DatabaseOptionsTask(task, devices, terms, seeds=seeds, model_error=error) for task in tasks]


def _efficient(tasks: Sequence[DatabaseOptionsTask], rounds: int) -> bool:
    """One worker against two, in random order in each round."""
    efficiencies = []
    chance = random.Random(1)
    for _ in range(rounds):
        took_s = {}
        for workers in chance.sample((1, 2), 2):
            with open_executor("local", workers) as cluster:
                _warm(cluster, workers)
                _, took_s[workers] = _run(cluster, tasks)
        efficiencies.append(took_s[1] / took_s[2] / 2)
        print(f"  one worker {took_s[1]:.1f} s, two {took_s[2]:.1f} s", flush=True)
    if not efficiencies:
        return True
    median = statistics.median(efficiencies)
    print(
        f"  efficiency from one worker to two, median of {rounds} rounds of {len(tasks)} recordings: "
        f"{median:.3f} ({min(efficiencies):.3f} to {max(efficiencies):.3f}), bar {EFFICIENCY_BAR}",
        flush=True,
    )
    return median >= EFFICIENCY_BAR


def _large(tasks: Sequence[DatabaseOptionsTask], compared: int, folder: Path) -> bool:
    """All recordings on two workers, with a scheduler in a process of its own; the first also on threads."""
    with _scheduler(folder) as (address, scheduler):
        workers = _started("distributed.cli.dask_worker", address, "--nworkers", "2", "--nthreads", "1")
        with _ended(workers), open_executor(address, None) as cluster:
            _warm(cluster, 2)
            with _peaks() as peaks:
                rows, took_s = _run(cluster, tasks)
    client_mb, scheduler_mb = peaks.pop(os.getpid()), peaks.pop(scheduler.pid)
    worker_mb = max(peaks.values())
    print(
        f"  {len(tasks)} recordings on two workers: {took_s:.1f} s, peak memory {worker_mb:.0f} MB of a "
        f"worker (bar {WORKER_BAR_MB}), {scheduler_mb:.0f} MB of the scheduler (bar {SCHEDULER_BAR_MB}), "
        f"{client_mb:.0f} MB of the client",
        flush=True,
    )
    expected, took_s = _run(ThreadExecutor(), tasks[:compared])
    same = all(rows[number] == row for number, row in expected.items())
    text = "are the same" if same else "DIFFER"
    print(f"  the first {compared} on threads: {took_s:.1f} s; the rows of the workers {text}")
    return same and worker_mb <= WORKER_BAR_MB and scheduler_mb <= SCHEDULER_BAR_MB


def _warm(cluster: Executor, workers: int) -> None:
    """Let every worker import what it needs and wear in the devices, before a clock starts."""
    list(cluster.run(_start, range(4 * workers)))


def _start(_: int) -> None:
    tasks, _left_out = find_recordings([str(EXAMPLES / "keyed-update")])
    devices = tuple(resolve_device(name).name for name in DEVICES)
    database_options(DatabaseOptionsTask(tasks[0], devices, PaymentTerms(), seeds=2))
    time.sleep(0.1)


def _run(engine: Executor, tasks: Sequence[DatabaseOptionsTask]) -> tuple[dict[int, Any], float]:
    begin_s = time.perf_counter()
    rows = dict(engine.run(database_options, tasks))
    took_s = time.perf_counter() - begin_s
    assert all(isinstance(row, DatabaseOptions) for row in rows.values()), "every recording can be used"
    return rows, took_s


@contextmanager
def _peaks() -> Iterator[dict[int, float]]:
    """Pid -> peak of the resident memory, in MB, of this process and its children."""
    peaks: dict[int, float] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            for child in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    peaks[child.pid] = max(peaks.get(child.pid, 0.0), child.memory_info().rss / 1e6)
                except psutil.NoSuchProcess:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


@contextmanager
def _scheduler(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A scheduler in a process of its own: its address and the process."""
    file = folder / "scheduler.json"
    options = ["--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    process = _started("distributed.cli.dask_scheduler", *options)
    with _ended(process):
        while not file.exists():
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"], psutil.Process(process.pid)
    file.unlink(missing_ok=True)


def _started(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


@contextmanager
def _ended(*processes: subprocess.Popen[bytes]) -> Iterator[None]:
    """End processes on exit; a nanny ends its workers."""
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _simulated(workers: int, task_s: float, folder: Path) -> None:
    from distributed import Client

    with _scheduler(folder) as (address, scheduler), ExitStack() as stack:
        for first in range(0, workers, WORKERS_A_PROCESS):
            here = min(WORKERS_A_PROCESS, workers - first)
            stack.enter_context(_ended(_started("fleet_cluster", "--sleepers", address, str(here))))
        client = stack.enter_context(Client(address, set_as_default=False))
        client.wait_for_workers(workers, timeout=300)
        for chunk in CHUNKS:
            _sleep(client, scheduler, workers, chunk, task_s)


def _sleep(client: Any, scheduler: psutil.Process, workers: int, chunk: int, task_s: float) -> None:
    """Let workers sleep as long as chunks of databases take, and print what the scheduler adds."""
    from tierwise.cluster.dask_executor import DaskExecutor

    tasks = [chunk * task_s] * (workers * TASKS_A_WORKER)
    cpu_before = sum(scheduler.cpu_times()[:2])
    begin_s = time.perf_counter()
    list(DaskExecutor(client).run(time.sleep, tasks))
    took_s = time.perf_counter() - begin_s
    cpu_s = sum(scheduler.cpu_times()[:2]) - cpu_before
    ideal_s = TASKS_A_WORKER * chunk * task_s
    print(
        f"  {workers} workers, chunks of {chunk} x {task_s:.3f} s: {took_s:.2f} s, "
        f"{len(tasks) / took_s:.0f} tasks/s, workers busy {ideal_s / took_s:.1%}, "
        f"scheduler {1e3 * cpu_s / len(tasks):.1f} ms of CPU time a task, {cpu_s / took_s:.0%} of one core, "
        f"{scheduler.memory_info().rss / 1e6:.0f} MB",
        flush=True,
    )


def _sleepers(address: str, count: int) -> None:
    """Run workers of one thread each in this process, until it is ended.

    Each worker would sample its own stack every 10 ms and its memory twice a second. Hundreds of them on one
    machine do nothing else then. Their heartbeats, which the scheduler sees, stay.
    """
    import dask
    from distributed import Worker

    dask.config.set(
        {
            "distributed.worker.profile.enabled": False,
            "distributed.admin.system-monitor.interval": "60s",
            "distributed.admin.tick.interval": "10s",
            "distributed.admin.tick.cycle": "60s",
        }
    )

    async def run() -> None:
        workers = [
            Worker(address, nthreads=1, host="127.0.0.1", dashboard=False, memory_limit=0)
            for _ in range(count)
        ]
        await asyncio.gather(*workers)
        await asyncio.gather(*(worker.finished() for worker in workers))

    asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
