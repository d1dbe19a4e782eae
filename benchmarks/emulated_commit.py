"""A PostgreSQL on an emulated disk beside one in memory whose syncs take as long as the disk's model says.

``python benchmarks/emulated_commit.py [PROFILE...] [--pairs N] [--seconds S]``, as root, with PostgreSQL 15
of Debian and a C compiler. Both servers are up at once. In each pair, pgbench (simple update, 4 clients) runs
against both, in random order. The ratio of the rates is 1 if the emulation is exact.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.device_models.profiles import DeviceProfile
from tierwise.host import programs
from tierwise.host.disk.disk import EmulatedDisk
from tierwise.host.disk.disk_config import Partition
from tierwise.host.users import account_ids, server_user
from tierwise.predict import resolve_device
from tierwise.predict.estimates import estimate_from_seeds

BAR = 0.05
PROFILES = ["ssd-nvme-dc", "volume-aws-gp3"]
_BIN = Path("/usr/lib/postgresql/15/bin")
_SPIN_NS = 30_000
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "1GB",
    "min_wal_size": "1GB",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "1h",
    "full_page_writes": "off",
    "wal_sync_method": "fdatasync",
    "autovacuum": "off",
}
_DELAY = r"""
#include <time.h>
#include <stdlib.h>
#include <sys/prctl.h>
static long long now(void) {
    struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int fdatasync(int fd) {
    static long long takes;
    (void)fd;
    if (!takes) { prctl(PR_SET_TIMERSLACK, 1); takes = atoll(getenv("SYNC_NS")); }
    long long due = now() + takes, sleeps = due - SPIN_NS;
    if (sleeps > now()) {
        struct timespec t = {sleeps / 1000000000LL, sleeps % 1000000000LL};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
    }
    while (now() < due);
    return 0;
}
"""


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("profiles", nargs="*", default=PROFILES)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=4, help="length of a slot")
    options = parser.parse_args()
    missed = False
    for name in options.profiles:
        profile = resolve_device(name).profile
        pattern = "log-append-8k" if profile.write_cache else "seqwrite-8k"
        writes = simulate_job(profile, SimulationJob(preset=pattern, count=5_000))
        sync_us = writes.virtual_s * 1e6 / writes.ops["write"].count
        ratios, rates = _measured(profile, sync_us, options)
        ratio = estimate_from_seeds(ratios)
        assert ratio is not None
        low, high = ratio.low, ratio.high
        print(
            f"{name}: a sync takes {sync_us:.0f} us; emulated over memory with that delay {ratio.value:.3f} "
            f"(95 %: {low:.3f} to {high:.3f}), {len(ratios)} pairs, {rates[len(rates) // 2]:,.0f} a second",
            flush=True,
        )
        missed |= low < 1 - BAR or high > 1 + BAR
    print(f"bar: within {BAR:.0%}, with all of its interval")
    return int(missed)


def _measured(
    profile: DeviceProfile, sync_us: float, options: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """Ratios by pair, and the rates on the emulated disk, ascending."""
    ratios: list[float] = []
    rates: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        mounted = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        for each in (folder, mounted):
            each.chmod(0o755)
        library = _delaying(folder)
        disk = EmulatedDisk.up(
            "emulated-commit", profile, [Partition("data", 2 << 30), Partition("log", 2 << 30)], mounted
        )
        stack.enter_context(disk)
        preloaded = {"LD_PRELOAD": str(library), "SYNC_NS": str(round(sync_us * 1e3))}
        sockets = {
            "emulated": stack.enter_context(
                _server(disk.mounts["data"] / "pg", disk.mounts["log"] / "wal", folder / "emulated", {})
            ),
            "memory": stack.enter_context(
                _server(folder / "pg", folder / "wal", folder / "memory", preloaded)
            ),
        }
        for _ in range(2):
            for socket in sockets.values():
                _rate(socket, options.seconds)
        for _ in range(options.pairs):
            pair = {name: _rate(sockets[name], options.seconds) for name in random.sample(list(sockets), 2)}
            ratios.append(pair["emulated"] / pair["memory"])
            rates.append(pair["emulated"])
    return ratios, sorted(rates)


def _delaying(folder: Path) -> Path:
    """A library whose ``fdatasync`` waits."""
    source, library = folder / "delay.c", folder / "delay.so"
    source.write_text(f"#define SPIN_NS {_SPIN_NS}LL\n{_DELAY}")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@contextmanager
def _server(data: Path, log: Path, socket: Path, variables: dict[str, str]) -> Iterator[Path]:
    """A server with its log in a directory of its own, filled for pgbench; its socket's directory."""
    uid, gid = account_ids(server_user()) or (os.geteuid(), os.getegid())
    for each in (data, log, socket):
        each.mkdir(mode=0o700)
        os.chown(each, uid, gid)
    _run([_BIN / "initdb", "-D", data, "-X", log, "-A", "trust", "-N", "-U", "bench"])
    settings = _SETTINGS | {"unix_socket_directories": str(socket)}
    argv: list[str | Path] = [
        _BIN / "postgres",
        "-D",
        data,
        *(f"--{name}={value}" for name, value in settings.items()),
    ]
    server = programs.start("emulated-commit", argv, variables=variables)
    try:
        for _ in range(100):
            if (socket / ".s.PGSQL.5432").exists():
                break
            time.sleep(0.1)
        # The log of the filling is recycled: later no file of it is made.
        _run(["pgbench", "-h", socket, "-U", "bench", "-i", "-q", "-s", "40", "postgres"])
        _run(["psql", "-h", socket, "-U", "bench", "-c", "CHECKPOINT", "postgres"])
        os.sync()
        yield socket
    finally:
        server.signal(signal.SIGINT)
        server.wait_or_kill(60)


def _rate(socket: Path, seconds: int) -> float:
    """Transactions a second of pgbench's simple update by 4 clients."""
    argv = ["pgbench", "-h", str(socket), "-U", "bench", "-n", "-N", "-c", "4", "-T", str(seconds)]
    shown = _run([*argv, "postgres"])
    return float(next(line for line in shown.splitlines() if line.startswith("tps")).split()[2])


def _run(argv: list[str | Path]) -> str:
    """What a program prints that runs as the server's account."""
    return programs.run("emulated-commit", argv).output


if __name__ == "__main__":
    raise SystemExit(main())
