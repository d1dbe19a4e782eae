"""Limits of a server's memory, page cache included, and what of a file is in the page cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine_contract import until
from tierwise.host import cgroups, ledger, processes
from tierwise.host.cgroups import MemoryLimit, memory_limit_obstacle
from tierwise.host.clean import clean
from tierwise.host.page_cache import files_below, open_files, resident_bytes
from tierwise.model.errors import TierwiseError

MIB = 1 << 20
limits = pytest.mark.skipif(
    memory_limit_obstacle() is not None, reason=f"no memory limits: {memory_limit_obstacle()}"
)
pytestmark = pytest.mark.usefixtures("run_dir")

# A child is forked first, which must be confined too; it is the one that reads.
READER = """
import os, sys, time
if os.fork():
    time.sleep(60)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
with open(sys.argv[1], "rb", buffering=0) as file:
    while file.read(1 << 20):
        pass
open(sys.argv[3], "w").close()
time.sleep(60)
"""


@pytest.fixture
def large_file() -> Iterator[Path]:
    """96 MiB on a file system with a device, none of it in the page cache."""
    path = Path("/var/tmp") / f"tierwise-{os.getpid()}"
    path.write_bytes(bytes(96 * MIB))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    yield path
    path.unlink()


@limits
def test_a_limit_bounds_the_page_cache_of_all_processes(large_file: Path, tmp_path: Path) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    reader = processes.start("reader", [sys.executable, "-c", READER, large_file, go, done])
    with MemoryLimit.make(32 * MIB) as limit:
        until(lambda: list(open_files([reader.pid])) or _children(reader.pid))
        limit.confine(reader.pid)
        go.touch()
        until(done.exists)
        cached = resident_bytes(large_file)
        reader.kill()
    assert cached is not None and 0 < cached <= 32 * MIB
    assert not ledger.entries("limit")


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()


@limits
def test_clean_removes_the_limit_of_a_dead_owner(run_dir: Path) -> None:
    script = "from tierwise.host.cgroups import MemoryLimit; MemoryLimit.make(32 << 20)"
    subprocess.run([sys.executable, "-c", script], check=True)
    (entry,) = ledger.entries("limit")
    assert clean() == [f"limit {entry.name}"]
    assert not list(cgroups.ROOT.glob(f"*/{cgroups.PARENT}/{entry.name}"))


@limits
def test_a_limit_that_no_server_fits_in_is_refused() -> None:
    with pytest.raises(TierwiseError, match="memory: 1048576 bytes: give at least 16M"):
        MemoryLimit.make(MIB)


def test_a_user_is_told_why_memory_cannot_be_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("os.geteuid", lambda: 1000)
        assert memory_limit_obstacle() == "only root can limit a server's memory"


def test_residency_follows_the_page_cache(large_file: Path) -> None:
    assert resident_bytes(large_file) == 0
    with large_file.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        file.read(8 * MIB)
    resident = resident_bytes(large_file)
    # The kernel may have taken some pages back meanwhile.
    assert resident is not None and 4 * MIB <= resident < 96 * MIB
    assert resident_bytes(large_file.with_name("none")) is None


def test_files_are_found_open_and_below_links(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "there")
    file = tmp_path / "there" / "file"
    with file.open("w") as opened:
        opened.write("x")
        opened.flush()
        assert file in {file.path for file in open_files([os.getpid()])}
        assert [path for path, _ in files_below([tmp_path / "here"])] == [file]
        file.unlink()
        assert file in {file.path for file in open_files([os.getpid()])}
    assert not list(open_files([2**22 + 1]))
