"""What every test may lean on."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tierwise.host import ledger, loop, mounts
from tierwise.host.doctor import examine, missing_for_emulation

TRIES = 4
"""Of a test that measures real time: what a busy machine adds comes and goes, a defect stays."""

# A slow machine is no defect.
hypothesis.settings.register_profile(
    "tierwise", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tierwise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs privileges where there are none, and say which; repeat what measures real time."""
    missing = ", ".join(check.name for check in missing_for_emulation(examine()))
    for item in items:
        if missing and item.get_closest_marker("privileged"):
            item.add_marker(pytest.mark.skip(reason=f"no emulated devices here: missing {missing}"))
        if item.get_closest_marker("timed"):
            item.add_marker(pytest.mark.flaky(reruns=TRIES - 1, reruns_delay=1))


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
        assert not loop.attached_below(directory), "left attached"
