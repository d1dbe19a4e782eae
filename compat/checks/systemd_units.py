"""PostgreSQL in units with file systems, mounts and users of their own, recorded from outside."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from checks.tools import about, left_behind, postgres_programs, query, run, tierwise, until, work_folder

UNIT = "compat-postgres"
PLACE = Path("/var/lib/compat-postgres")

_FILES = "SELECT path, role, device, size_bytes FROM files WHERE role IS NOT NULL"


def protected_system() -> None:
    """ProtectSystem, PrivateTmp and PrivateDevices: the paths are the host's."""
    _recorded(PLACE, [f"ReadWritePaths={PLACE}", "PrivateDevices=yes"], by_engine=True)


def other_paths() -> None:
    """TemporaryFileSystem and BindPaths: the data directory is at a path that the host does not have."""
    place = Path("/srv/inside")
    _recorded(place, ["TemporaryFileSystem=/srv", f"BindPaths={PLACE}:{place}"], by_engine=False)
    assert not place.exists(), "it is the unit's alone"


def own_users() -> None:
    """PrivateUsers: a user namespace beside the mounts."""
    _recorded(PLACE, [f"ReadWritePaths={PLACE}", "PrivateUsers=yes"], by_engine=True)


def _recorded(place: Path, properties: list[str], *, by_engine: bool) -> None:
    """Record a busy server whose data directory is at ``place`` for the unit; check the recording."""
    folder = work_folder(f"unit-{properties[-1].partition('=')[0]}")
    with _server(place, properties) as pid, _load(pid):
        who = ["--engine", "postgres"] if by_engine else ["--pid", str(pid)]
        tierwise("record", "-o", folder / "of", *who, "--duration", "20s", "--duty", "1/2", status=None)
    assert not left_behind(), left_behind()
    about_recording = about(folder / "of")
    files = query(folder / "of", _FILES)
    outside = [path for path, *_ in files if not Path(path).is_relative_to(place)]
    assert files and not outside, outside
    sizes = {role: max(row[3] for row in files if row[1] == role) for role in {row[1] for row in files}}
    assert sizes.get("log") == 16 << 20 and sizes.get("data", 0) > 1 << 20, sizes
    spaces = [row for row in files if row[1] == "data" and row[0].startswith(f"{place}/space/PG_")]
    assert spaces, "no table in the tablespace"
    (held,) = {row[2] for row in files}
    device = about_recording["devices"][held]
    source = run("findmnt", "--noheadings", "--output", "MAJ:MIN", "--target", "/var/lib").strip()
    assert f"{device['major']}:{device['minor']}" == source, (device, source)
    assert about_recording["data_directory_bytes"] > 30 << 20, about_recording["data_directory_bytes"]
    print(
        f"{len(files)} files, {sizes}, {about_recording['data_directory_bytes']} bytes, on {device['name']}"
    )


@contextlib.contextmanager
def _server(place: Path, properties: list[str]) -> Iterator[int]:
    """A server as a transient unit, with its first process."""
    subprocess.run(["systemctl", "stop", "postgresql"], capture_output=True, check=False)
    shutil.rmtree(PLACE, ignore_errors=True)
    run("install", "--directory", "--owner=postgres", "--mode=700", PLACE, PLACE / "space")
    programs = postgres_programs()
    run(programs / "initdb", "-D", PLACE / "data", "-A", "trust", "--no-sync", user="postgres")
    common = ["User=postgres", "ProtectSystem=strict", "PrivateTmp=yes", "ProtectHome=yes", "Type=exec"]
    options = [word for option in (*common, *properties) for word in ("-p", option)]
    server: list[str | Path] = [
        programs / "postgres",
        "-D",
        place / "data",
        "-k",
        "/tmp",
        "-c",
        "listen_addresses=",
    ]
    try:
        run("systemd-run", f"--unit={UNIT}", "--collect", *options, *server)
        pid = int(run("systemctl", "show", "--property=MainPID", "--value", UNIT))
        until(lambda: Path(f"/proc/{pid}/root/tmp/.s.PGSQL.5432").exists())
        yield pid
    finally:
        subprocess.run(["systemctl", "stop", UNIT], capture_output=True, check=False)
        shutil.rmtree(PLACE)


@contextlib.contextmanager
def _load(pid: int) -> Iterator[None]:
    """pgbench in a database in a tablespace, through the socket in the unit's own /tmp."""
    socket = ["-h", f"/proc/{pid}/root/tmp", "-U", "postgres"]
    place = Path(run("readlink", f"/proc/{pid}/cwd").strip()).parent / "space"
    until(
        lambda: subprocess.run(["psql", *socket, "-c", ""], capture_output=True, check=False).returncode == 0
    )
    space = f"CREATE TABLESPACE space LOCATION '{place}'"
    run("psql", *socket, "-c", space, "-c", "CREATE DATABASE bench TABLESPACE space")
    pgbench = postgres_programs() / "pgbench"
    run(pgbench, *socket, "-i", "-q", "-s", "1", "bench")
    command: list[str | Path] = [pgbench, *socket, "-c", "2", "-T", "900", "bench"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/") as load:
        try:
            yield
        finally:
            load.terminate()


CHECKS = [protected_system, other_paths, own_users]
