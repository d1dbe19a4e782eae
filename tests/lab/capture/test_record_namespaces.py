"""Databases in containers and in units with private mounts, recorded from outside."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import namespaces
from support.forwarder import forwarding
from tierwise import _core
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.record import record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.sql_session import parse_dsn
from tierwise.capture.target import load_rules, pid_of_engine, target_of_process
from tierwise.host import mounts
from tierwise.model.errors import TierwiseError
from tierwise.recording import Recording

MIB = 1 << 20


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory for servers; empty in the end."""
    with tempfile.TemporaryDirectory(prefix="tierwise-namespaces-", dir="/var/tmp") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@contextmanager
def disk(home: Path) -> Iterator[str]:
    """A loop device with a file system that is mounted nowhere yet."""
    image = home / "image"
    with image.open("wb") as output:
        output.truncate(600 * MIB)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    command = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def server(kind: str, home: Path, mount: str) -> Iterator[namespaces.Server]:
    with tempfile.TemporaryDirectory(dir=home) as path:
        Path(path).chmod(0o755)
        with namespaces.server(kind, mount, Path(path)) as running:
            yield running


@pytest.mark.parametrize("kind", ["private /tmp", "own root"])
def test_a_device_that_only_the_container_mounts(kind: str, home: Path) -> None:
    out = home / "recording"
    with disk(home) as device, server(kind, home, device) as running:
        assert running.pid in _core.first_processes(["postgres"])
        assert Path(device).name not in {mount.source for mount in mounts.mounts()}
        with running.busy():
            recorded = record_running_database(
                target_of_process(running.pid), out, BurstSchedule(3.0, 0.5, 0.5), lambda _: None
            )
        size_bytes = recorded["data_directory_bytes"]
        known = _sizes(running.pid)
    devices = Recording.open(out, whole=True).about.devices
    (held,) = [at for at, value in enumerate(devices) if value.roles]
    assert (devices[held].name, devices[held].mount) == (Path(device).name, "/mnt")
    assert [link.kind for link in devices[held].chain[:2]] == ["ext4", "loop"]
    assert known["/mnt/wal"] > 16 * MIB and known["/mnt/space"] > MIB // 2
    assert size_bytes == pytest.approx(sum(known.values()), abs=40 * MIB), "with what its links lead to"
    assert_right_files(out, held)
    with Recording.open(out).connect() as data:
        traffic = data.sql(
            f"SELECT role, op, count(*) FROM blocks b JOIN files f USING (file) WHERE b.device = {held} "
            "AND b.op = 'write' GROUP BY ALL"
        ).fetchall()
    assert {role for role, _, _ in traffic} >= {"log", "data"}, "extents were read through the server's root"


def test_a_server_with_users_of_its_own(home: Path) -> None:
    out, place = home / "recording", home / "place"
    place.mkdir()
    shutil.chown(place, int(namespaces.ACCOUNT), int(namespaces.ACCOUNT))
    with server("own users", home, f"--bind {place}") as running, running.busy():
        record_running_database(
            target_of_process(running.pid), out, BurstSchedule(3.0, 0.5, 0.5), lambda _: None
        )
    devices = Recording.open(out, whole=True).about.devices
    held = [at for at, value in enumerate(devices) if value.roles]
    assert_right_files(out, held[0] if held else None)


def test_servers_of_several_containers_are_listed(home: Path) -> None:
    for name in ("one", "other"):
        (home / name).mkdir()
    with (
        server("own root", home, f"--bind {home}/one") as first,
        server("private /tmp", home, f"--bind {home}/other") as second,
        pytest.raises(TierwiseError, match="several servers of postgres run") as raised,
    ):
        pid_of_engine("postgres")
    assert {str(first.pid), str(second.pid)} <= set(re.findall(r"\d+", str(raised.value)))
    described = str(raised.value).split("; ")
    contained = [word for word in described if "in a container" in word]
    assert [f"pid {first.pid}," in word for word in contained] == [True], "the other has only a private /tmp"
    assert all("data directory /mnt/data" in word for word in described if str(first.pid) in word)


def test_the_dsn_of_a_container_s_server_is_its_own_alone(home: Path) -> None:
    for name in ("one", "other"):
        (home / name).mkdir()
    with (
        server("own root", home, f"--bind {home}/one") as first,
        server("own root", home, f"--bind {home}/other") as second,
    ):
        recorded = target_of_process(first.pid)
        own, other = (
            parse_dsn(f"host=/proc/{server.pid}/root/mnt/socket user=postgres dbname=postgres", "test")
            for server in (first, second)
        )
        assert EngineCounters.connect(own, recorded).warnings == []
        with pytest.raises(TierwiseError, match=f"--pid {second.pid}"):
            EngineCounters.connect(other, recorded)
        # Their data directories and the numbers that they see are alike: the system's identifier is not.
        socket = Path(f"/proc/{second.pid}/root/mnt/socket/.s.PGSQL.5432")
        with (
            forwarding(socket) as port,
            pytest.raises(TierwiseError, match="its server is another one"),
        ):
            proxied = parse_dsn(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", "test")
            EngineCounters.connect(proxied, recorded)


_HELD = """
import os, sys, time
os.chdir(sys.argv[1])
if sys.argv[2]:
    os.chroot(".")
print(flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("change", "names"), [("chroot", "(chroot)"), ("mounted over", "mounted over it"), ("removed", "removed")]
)
def test_a_process_whose_paths_lead_elsewhere_is_refused(change: str, names: str, home: Path) -> None:
    place = home / "data"
    place.mkdir()
    command = [sys.executable, "-c", _HELD, str(place), "yes" if change == "chroot" else ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None and running.stdout.readline()
            if change == "mounted over":
                mounts.mount("none", place, "tmpfs")
            elif change == "removed":
                place.rmdir()
            with pytest.raises(TierwiseError, match=re.escape(names)):
                target_of_process(running.pid, load_rules("postgres"))
        finally:
            running.kill()
            if change == "mounted over":
                mounts.unmount(place)


def assert_right_files(out: Path, device: int | None) -> None:
    """Paths as the container sees them, with role, device and size."""
    with Recording.open(out).connect() as data:
        rows = data.sql("SELECT path, role, device, size_bytes FROM files WHERE role IS NOT NULL").fetchall()
    assert all(path.startswith("/mnt/") for path, *_ in rows)
    assert {at for _, _, at, _ in rows} == {device}
    logs = [size for path, role, _, size in rows if role == "log" and path.startswith("/mnt/wal/")]
    tables = [size for path, role, _, size in rows if role == "data" and path.startswith("/mnt/space/PG_")]
    assert 16 * MIB in logs, "a segment of the log behind a link"
    assert max(tables, default=0) >= MIB // 2, "the table behind the tablespace's link"


def _sizes(pid: int) -> dict[str, int]:
    """Sizes of the server's directories, by its own paths."""
    places = [f"/mnt/{name}" for name in ("data", "wal", "space")]
    command = ["nsenter", "-t", str(pid), "--mount", "du", "--bytes", "--summarize", *places]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {path: int(size) for size, path in (line.split("\t") for line in lines)}
