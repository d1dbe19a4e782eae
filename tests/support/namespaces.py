"""A PostgreSQL server in namespaces of its own, as a container or a systemd unit has them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tierwise.lab.engines.postgres.binaries import embedded_postgres

ACCOUNT = "65534"
"""The server refuses to run as root."""

_SERVER = """
set -e
as=
if [ "$(id -u)" = 0 ]; then
    as=$AS_ACCOUNT
fi
mkdir -p /mnt/space /mnt/socket
chown $ACCOUNT /mnt /mnt/space /mnt/socket
cd /mnt
$as "$BIN/initdb" -D /mnt/data --waldir /mnt/wal -A trust -U postgres --no-sync >/dev/null
exec $as "$BIN/postgres" -D /mnt/data -k /mnt/socket -c listen_addresses= -c shared_memory_type=mmap \\
    -c wal_keep_size=1GB
"""

_PRIVATE_TMP = """
set -e
mount $FROM /mnt
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
"""

_OWN_ROOT = """
set -e
mount -t tmpfs root "$EMPTY"
cd "$EMPTY"
for entry in /*; do
    name=${entry#/}
    if [ -L "$entry" ]; then cp -P "$entry" "$name"; continue; fi
    [ -d "$entry" ] || continue
    mkdir "$name"
    case $name in
        mnt) mount $FROM mnt ;;
        proc) mount -t proc proc proc ;;
        tmp) mount -t tmpfs tmp tmp; chmod 1777 tmp ;;
        *) mount --rbind "$entry" "$name" ;;
    esac
done
mkdir old
pivot_root . old
umount --lazy /old
"""

_AS_ACCOUNT = f"setpriv --reuid {ACCOUNT} --regid {ACCOUNT} --clear-groups"
KINDS = {
    "private /tmp": ("unshare --mount", _PRIVATE_TMP),
    "own root": ("unshare --mount --pid --uts --ipc", _OWN_ROOT),
    "own users": (
        f"{_AS_ACCOUNT} unshare --user --map-current-user --keep-caps --mount --pid",
        _PRIVATE_TMP,
    ),
}
"""What a unit with PrivateTmp, a container and a container without privileges have of their own."""


@dataclass(frozen=True)
class Server:
    """A server whose data directory nobody else sees at /mnt."""

    pid: int
    """Of its first process, as the host sees it."""

    def connect(self) -> psycopg.Connection:
        """A session through the socket, which the host reaches through the server's root."""
        return psycopg.connect(f"host=/proc/{self.pid}/root/mnt/socket user=postgres", autocommit=True)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A tablespace with a table in it, to which one row after the other is committed."""
        with self.connect() as session:
            session.execute("CREATE TABLESPACE space LOCATION '/mnt/space'")
            session.execute("CREATE TABLE rows (text text) TABLESPACE space")
            session.execute("INSERT INTO rows SELECT repeat('x', 500) FROM generate_series(1, 1000)")
        stopping = threading.Event()

        def commit() -> None:
            with self.connect() as session:
                while not stopping.is_set():
                    session.execute("INSERT INTO rows VALUES (repeat('x', 500))")
                    session.execute("CHECKPOINT")

        thread = threading.Thread(target=commit)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()


@contextmanager
def server(kind: str, mount: str, home: Path) -> Iterator[Server]:
    """Start one and end it.

    Args:
        kind: of :data:`KINDS`.
        mount: arguments of ``mount`` for what is at /mnt there: a device, or ``--bind`` and a directory.
        home: an empty directory, open to all and not in /tmp, for the server's programs and messages.
    """
    unshare, setting_up = KINDS[kind]
    (home / "root").mkdir()
    log = home / "log"
    command = [*unshare.split(), "--fork", "--kill-child", "sh", "-c", setting_up + _SERVER]
    # A copy: the account may not enter where the programs lie, or /tmp hides them.
    facts = {"FROM": mount, "EMPTY": str(home / "root"), "BIN": str(embedded_postgres().copied(home).bin)}
    facts |= {"ACCOUNT": ACCOUNT, "AS_ACCOUNT": _AS_ACCOUNT}
    with log.open("wb") as output:
        outer = subprocess.Popen(command, env={**os.environ, **facts}, stdout=output, stderr=output)
    try:
        yield Server(_awaited(outer, log))
    finally:
        for pid in _children(outer.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            outer.wait(timeout=30)
        outer.kill()
        outer.wait()
        shutil.rmtree(home)


def _awaited(outer: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + 120
    while b"ready to accept connections" not in log.read_bytes():
        assert outer.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    (pid,) = _children(outer.pid)
    return pid


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
