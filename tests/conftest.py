"""What every test may lean on, and what follows from the folder that a test lies in.

- ``unit``: no process, no socket, no privilege; its own conftest refuses them.
- ``integration``: processes and sockets of this machine.
- ``lab``: needs root, FUSE and loop devices; without them its tests are skipped. ``lab/alone`` changes or
  times what the whole machine shares, so no other test runs beside it.
- ``release``: builds what is published.

Nobody marks a test by hand.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from support.paths import TESTS
from tierwise.host import block_devices, ledger, mounts
from tierwise.host.doctor import check_machine, failed_emulation_checks

APART = {"cli", "disks", "documentation", "faults", "predict", "report", "studies"}
"""Folders whose tests share nothing, so each runs wherever a worker is idle."""

TOGETHER = {"browser"}
"""Folders whose tests share what is started once for all of them."""

# A slow machine is no defect.
hypothesis.settings.register_profile(
    "tierwise", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tierwise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs privileges where there are none."""
    lab = [item for item in items if "lab" in item.path.relative_to(TESTS).parts]
    if lab and (missing := ", ".join(check.name for check in failed_emulation_checks(check_machine()))):
        for item in lab:
            item.add_marker(pytest.mark.skip(reason=f"no emulated devices here: missing {missing}"))


class Scheduling(LoadScopeScheduling):
    """Of ``--dist loadscope``: the tests of a module share its servers and run in one worker."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = Path(file).parent
        if folder.name in APART:
            return nodeid
        return str(folder) if folder.name in TOGETHER else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """The scheduling above in place of xdist's."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.fixture(autouse=True, scope="session")
def no_files_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Defaults and errors that the user keeps change no test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        yield


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """A runner in the background ignores SIGINT, and so would everything that the tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that every user can enter, unlike pytest's: the database's user is not the caller."""
    with tempfile.TemporaryDirectory(prefix="tierwise-open-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory in memory, so that no disk bounds the number of requests."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        yield Path(path)


@pytest.fixture
def own(open_path: Path) -> Path:
    """The directory of a device on this machine's own storage."""
    path = open_path / "own"
    path.mkdir()
    return path


@pytest.fixture
def run_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ledger of the test's own, which must be empty in the end; its path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="tierwise-test-") as path:
        directory = Path(path)
        directory.chmod(0o755)
        monkeypatch.setenv("TIERWISE_RUN_DIR", path)
        yield directory
        assert not ledger.entries(), "left in the ledger"
        assert not [mount for mount in mounts.mounts() if mount.point.is_relative_to(directory)], (
            "left mounted"
        )
        assert not block_devices.loop_devices_below(directory), "left attached"
