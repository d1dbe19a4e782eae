"""A log on a disk that it fills: what advice says of it beforehand is what happens."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from support import own_servers
from support.disk_traces import NAME
from support.engine_contract import bytes_under, open_directory
from support.own_servers import OwnServer
from tierwise import _core
from tierwise.capture import sql_session
from tierwise.capture.record import record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import target_of_process
from tierwise.device_models import profiles
from tierwise.host.disk.disk import EmulatedDisk, Partition
from tierwise.model.placement import Role
from tierwise.predict import Predictor
from tierwise.predict.role_space import role_spaces
from tierwise.recording import Recording

MIB = 1 << 20
DISK_BYTES, MAX_WAL_BYTES = 512 * MIB, 128 * MIB


@pytest.fixture
def server(run_dir: Path) -> Iterator[OwnServer]:
    if (reason := _core.recording_impossible()) is not None:
        pytest.skip(f"nothing can be recorded here: {reason}")
    part = [Partition("disk", DISK_BYTES)]
    settings = {"archive_mode": "on", "archive_command": "false", "max_wal_size": f"{MAX_WAL_BYTES // MIB}MB"}
    with (
        open_directory() as home,
        open_directory() as above,
        EmulatedDisk.up(NAME, profiles.load_profile("ssd-nvme-dc"), part, above / "mount") as disk,
    ):
        log = disk.mounts["disk"] / "wal"
        log.mkdir()
        with own_servers.postgres(home, log, **settings) as made:
            made.execute("CREATE TABLE part (id integer, text text STORAGE EXTERNAL)")
            yield made
            os.kill(made.pid, signal.SIGQUIT)  # a checkpoint before the end has no space


def fill(server: OwnServer) -> None:
    """Commit rows at an even pace until the server refuses."""
    rows = "SELECT n, repeat(md5(n::text), 100) FROM generate_series(1, 100) AS n"
    try:
        with server.postgres() as session:
            while True:
                session.execute(f"INSERT INTO part {rows}".encode())
                time.sleep(0.02)
    except psycopg.Error:
        return


def free_bytes(place: Path) -> int:
    free = os.statvfs(place)
    return free.f_bavail * free.f_frsize


def test_a_log_whose_archiver_stops_fills_its_disk(server: OwnServer, tmp_path: Path) -> None:
    log = (server.home / "data/pg_wal").resolve()
    load = threading.Thread(target=fill, args=(server,))
    load.start()
    out = tmp_path / "recording"
    address = sql_session.parse_dsn(
        f"postgresql://postgres@/postgres?host={quote(str(server.home), safe='')}", "test"
    )
    target = target_of_process(server.pid)
    record_running_database(target, out, BurstSchedule(4.0, 0.2, 0.5), lambda _: None, address)
    left_bytes, began_s = free_bytes(log), time.monotonic()
    about = Recording.open(out).about
    predictor = Predictor.open(out)
    space = role_spaces(about, predictor.work.footprints)[Role.LOG]
    assert space.unlimited.startswith("if archiving stops")
    assert {part.what: part.size_bytes for part in space.parts} == {"max_wal_size": MAX_WAL_BYTES}
    assert 16 * MIB <= about.role_bytes[Role.LOG] <= DISK_BYTES
    predicted_s = left_bytes / space.grows_bytes_per_s
    load.join(120)
    assert not load.is_alive(), "the disk never filled"
    measured_s = time.monotonic() - began_s
    assert "No space left on device" in (server.home / "log").read_text()
    assert bytes_under(log) > 2 * MAX_WAL_BYTES
    # A machine that is busy for a while fills it later, or recorded a slower load.
    assert 0.5 * predicted_s < measured_s < 2 * predicted_s, (predicted_s, measured_s)
