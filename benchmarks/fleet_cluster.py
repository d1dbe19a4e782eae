"""Bars of a fleet on a cluster: the same rows as threads, efficiency, memory, and the limits of a scheduler.

``python benchmarks/fleet_cluster.py [--recordings 1000]`` makes recordings from those that ship: time within each
burst is stretched and compressed at random, so that durations differ and the order of events stays. It then
works out their options on threads, with one worker and with two, and compares rows, time and memory. Exit
status 1 if a bar is missed.

``--simulated 64,512 --task-s 2.5`` instead runs so many workers, without processes of their own, on a real
scheduler in a process of its own. Each task sleeps. Printed are the overhead of a task and the share of time in
which workers sleep, for tasks of several lengths as chunks of several databases have.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil

from tierwise.advise import Terms
from tierwise.fleet import DatabaseOptions, Executor, OptionsTask, Threads, catalogue, options_of
from tierwise.fleet.dask_executor import executor
from tierwise.predict import resolve
from tierwise.predict.model_error import ModelError
from tierwise.recording import Recording

EXAMPLES = Path(__file__).parents[1] / "examples/recordings"
DEVICES = ("nvme-dc", "gp3", "io2")
EFFICIENCY_BAR = 0.9
WORKER_BAR_MB, SCHEDULER_BAR_MB = 500, 300
KNOTS = 50
"""Stretches of a burst with a pace of their own."""
PACES = (0.8, 1.25)
CHUNKS = (1, 4, 16)
TASKS_A_WORKER = 8
WORKERS_A_PROCESS = 64


def main() -> int:
    """Make, run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--recordings", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--simulated", default="", help="numbers of workers, such as 64,512")
    parser.add_argument(
        "--task-s", type=float, help="time of one database on one processor; measured if not given"
    )
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="tierwise-fleet-") as folder:
        if options.simulated:
            task_s = options.task_s or _task_s(Path(folder), options.seeds)
            for workers in map(int, options.simulated.split(",")):
                _simulated(workers, task_s, Path(folder))
            return 0
        return _measured(Path(folder), options.recordings, options.seeds)


def perturbed(source: Path, to: Path, seed: int) -> None:
    """A recording like another, in which time passes at another pace in each stretch of a burst."""
    import pyarrow as pa
    from pyarrow import parquet

    shutil.copytree(source, to)
    about = json.loads((to / "about.json").read_text("utf-8"))
    bursts = [(one["start_ns"], one["end_ns"]) for one in about["bursts"]]
    warp = _Warp(bursts, random.Random(seed))
    for file in to.glob("*.parquet"):
        table = parquet.read_table(file)
        for number, field in enumerate(table.schema):
            if field.name.endswith("_ns"):
                times = table[field.name].to_pylist()
                warped = [None if time_ns is None else warp(time_ns) for time_ns in times]
                table = table.set_column(number, field, pa.array(warped, field.type))
        parquet.write_table(table, file)
    Recording.open(to, whole=True)  # which raises if it is not valid


class _Warp:
    """A map of times onto times that keeps order and the ends of each burst."""

    def __init__(self, bursts: Sequence[tuple[int, int]], chance: random.Random) -> None:
        self.was: list[int] = []
        self.now: list[int] = []
        for start_ns, end_ns in bursts:
            steps = [chance.uniform(*PACES) for _ in range(KNOTS)]
            shares = [0.0, *accumulate(steps)]
            length = end_ns - start_ns
            self.was += [start_ns + length * knot // KNOTS for knot in range(KNOTS + 1)]
            self.now += [start_ns + int(length * share / shares[-1]) for share in shares[:-1]] + [end_ns]

    def __call__(self, time_ns: int) -> int:
        """Where a time comes to lie; outside of bursts it stays."""
        left = bisect_right(self.was, time_ns) - 1
        if left < 0 or left + 1 >= len(self.was) or self.was[left + 1] == self.was[left]:
            return time_ns
        done, of = time_ns - self.was[left], self.was[left + 1] - self.was[left]
        return self.now[left] + done * (self.now[left + 1] - self.now[left]) // of


def _tasks(folder: Path, count: int, seeds: int) -> list[OptionsTask]:
    sources = sorted(EXAMPLES.glob("*/"))
    for number in range(count):
        perturbed(sources[number % len(sources)], folder / f"shop-{number:05}", number)
    found, _ = catalogue([f"{folder}/shop-*"])
    devices, terms, error = tuple(resolve(name).name for name in DEVICES), Terms(), ModelError.read()
    return [OptionsTask(one, devices, terms, seeds=seeds, model_error=error) for one in found]


def _task_s(folder: Path, seeds: int) -> float:
    tasks = _tasks(folder, 3, seeds)
    with executor("local", 1) as cluster:
        list(cluster.run(options_of, tasks))  # imports and caches
        begin_s = time.perf_counter()
        list(cluster.run(options_of, tasks))
        return (time.perf_counter() - begin_s) / len(tasks)


def _measured(folder: Path, count: int, seeds: int) -> int:
    tasks = _tasks(folder, count, seeds)
    print(f"{count} recordings, devices {', '.join(DEVICES)}, {seeds} seeds")
    expected, took_s = _run(Threads(), tasks)
    print(f"  threads: {took_s:.1f} s")
    times: list[float] = []
    missed = False
    for workers in (1, 2):
        with executor("local", workers) as cluster:
            list(cluster.run(_start, range(4 * workers)))  # every worker imports before the clock starts
            with _peaks() as peaks:
                rows, took_s = _run(cluster, tasks)
        times.append(took_s)
        own, *others = sorted(peaks.items(), key=lambda one: one[0] != os.getpid())
        worker_mb = max(peak for _, peak in others)
        same = rows == expected
        missed |= not same or worker_mb > WORKER_BAR_MB or own[1] > SCHEDULER_BAR_MB
        print(
            f"  {workers} worker(s): {took_s:.1f} s, rows {'the same' if same else 'DIFFER'}, peak memory "
            f"{worker_mb:.0f} MB of a worker, {own[1]:.0f} MB of client and scheduler together"
        )
    efficiency = times[0] / times[1] / 2
    print(f"  efficiency from one worker to two: {efficiency:.3f}, bar {EFFICIENCY_BAR}")
    return int(missed or efficiency < EFFICIENCY_BAR)


def _start(_: int) -> None:
    resolve(DEVICES[0])
    time.sleep(0.1)


def _run(engine: Executor, tasks: Sequence[OptionsTask]) -> tuple[dict[int, object], float]:
    begin_s = time.perf_counter()
    rows = dict(engine.run(options_of, tasks))
    took_s = time.perf_counter() - begin_s
    assert all(isinstance(one, DatabaseOptions) for one in rows.values()), "every recording can be used"
    return rows, took_s


@contextmanager
def _peaks() -> Iterator[dict[int, float]]:
    """Pid -> peak of the resident memory, in MB, of this process and its children."""
    peaks: dict[int, float] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            for one in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    peaks[one.pid] = max(peaks.get(one.pid, 0.0), one.memory_info().rss / 1e6)
                except psutil.NoSuchProcess:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def _simulated(workers: int, task_s: float, folder: Path) -> None:
    from distributed import Client

    file = folder / f"scheduler-{workers}.json"
    listen = ["--host", "127.0.0.1", "--no-dashboard"]
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--port",
        "0",
        "--scheduler-file",
        str(file),
    ]
    started = [subprocess.Popen([*command, *listen], stderr=subprocess.DEVNULL)]
    try:
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for first in range(0, workers, WORKERS_A_PROCESS):
            here = min(WORKERS_A_PROCESS, workers - first)
            code = f"from benchmarks.fleet_cluster import sleepers; sleepers({address!r}, {here})"
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
            }
            started.append(
                subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL)
            )
        scheduler = psutil.Process(started[0].pid)
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=300)
            for chunk in CHUNKS:
                _sleep(client, scheduler, workers, chunk, task_s)
    finally:
        for process in started:
            process.kill()
            process.wait()


def _sleep(client: Any, scheduler: psutil.Process, workers: int, chunk: int, task_s: float) -> None:
    """Let workers sleep as long as chunks of databases take, and print what the scheduler adds."""
    from tierwise.fleet.dask_executor import Dask

    tasks = [chunk * task_s] * (workers * TASKS_A_WORKER)
    cpu_before = sum(scheduler.cpu_times()[:2])
    begin_s = time.perf_counter()
    list(Dask(client).run(time.sleep, tasks))
    took_s = time.perf_counter() - begin_s
    cpu_s = sum(scheduler.cpu_times()[:2]) - cpu_before
    ideal_s = TASKS_A_WORKER * chunk * task_s
    print(
        f"  {workers} workers, {chunk} database(s) of {task_s:.3f} s a task: {took_s:.2f} s, "
        f"workers busy {ideal_s / took_s:.1%}, scheduler {1e6 * cpu_s / len(tasks):.0f} us of a processor a task "
        f"({cpu_s / took_s:.0%} of one), {len(tasks) / took_s:.0f} tasks/s, {scheduler.memory_info().rss / 1e6:.0f} MB"
    )


def sleepers(address: str, count: int) -> None:
    """Run workers of one thread each in this process, until it is ended."""
    from distributed import Worker

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
