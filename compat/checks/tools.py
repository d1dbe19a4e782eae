"""Helpers of several checks: tierwise as a command, a busy database, leftovers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parents[1] / "examples" / "recordings"
GROUPS = Path("/sys/fs/cgroup")
WORK = Path("/var/tmp/compat")
_QUERY = """
import json, sys
from pathlib import Path
from tierwise.recording import Recording
print(json.dumps(Recording.open(Path(sys.argv[1])).connect().execute(sys.argv[2]).fetchall()))
"""


def run(*command: str | Path, user: str | None = None, status: int | None = 0) -> str:
    """Run a command, as root or another user, and return both outputs.

    Its exit status must be ``status``, where one is given.
    """
    words = [*(["runuser", "-u", user, "--"] if user else []), *map(str, command)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd="/", stdin=subprocess.DEVNULL
    )
    output = done.stdout + done.stderr
    assert status in (None, done.returncode), f"{' '.join(words)}: exit status {done.returncode}: {output}"
    assert "Traceback" not in output, f"{' '.join(words)}: {output}"
    return output


def tierwise(*arguments: str | Path, user: str | None = None, status: int | None = 0) -> str:
    """Run tierwise and return both outputs."""
    return run("tierwise", *arguments, user=user, status=status)


def until(condition: Callable[[], object], limit_s: float = 120) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not so after {limit_s} s"
        time.sleep(0.2)


def passed_on() -> set[str]:
    """Controllers that the root control group delegates."""
    control = GROUPS / "cgroup.subtree_control"
    return set(control.read_text("ascii").split()) if control.exists() else set()


def groups() -> list[Path]:
    """tierwise's control groups, of version 2 or 1."""
    return [*GROUPS.glob("tierwise/*/"), *GROUPS.glob("*/tierwise/*/")]


def left_behind() -> list[str]:
    """tierwise's leftover mounts, loop and ublk devices, control groups, processes and ledger entries.

    In the root of an image, the machine's ledger is a mount too.
    """
    mounts = [line for line in run("mount").splitlines() if " on /run/tierwise type " not in line]
    lines = [line for line in mounts if "tierwise" in line or str(WORK) in line]
    lines += [line for line in run("losetup", "--list", "--noheadings").splitlines() if "tierwise" in line]
    lines += [str(device) for device in Path("/dev").glob("ublk[bc]*")]
    lines += [str(group) for group in groups()]
    lines += [str(entry) for entry in Path("/run/tierwise").glob("*.json")]
    lines += subprocess.run(
        ["pgrep", "-a", "-u", "tierwise"], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    return lines


def work_folder(name: str) -> Path:
    """An empty directory of a check's own."""
    folder = WORK / name
    folder.mkdir(parents=True)
    return folder


def postgres_programs() -> Path:
    """Directory of the distribution's PostgreSQL programs."""
    return next(Path("/usr/lib/postgresql").glob("*/bin"))


@contextlib.contextmanager
def pgbench(seconds: int) -> Iterator[None]:
    """The distribution's pgbench, running on the distribution's server, which must be up."""
    folder = postgres_programs()
    run("psql", "-q", "-c", "DROP DATABASE IF EXISTS bench", "-c", "CREATE DATABASE bench", user="postgres")
    run(folder / "pgbench", "-i", "-q", "-s", "1", "bench", user="postgres")
    command = [
        "runuser",
        "-u",
        "postgres",
        "--",
        str(folder / "pgbench"),
        "-c",
        "2",
        "-T",
        str(seconds),
        "bench",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/") as load:
        try:
            yield
        finally:
            load.terminate()


def about(recording: Path) -> dict[str, Any]:
    """Metadata of a recording."""
    content: dict[str, Any] = json.loads((recording / "about.json").read_text("utf-8"))
    return content


def query(recording: Path, sql: str) -> list[list[Any]]:
    """Rows of a query to a recording."""
    rows: list[list[Any]] = json.loads(run("python3", "-c", _QUERY, recording, sql))
    return rows
