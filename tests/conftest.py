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

import hypothesis
import pytest

from support.paths import TESTS
from tierwise.host import ledger, loop, mounts
from tierwise.host.doctor import examine, missing_for_emulation

ONE_FOR_ALL = {"browser"}
"""Folders whose tests share what a fixture of the whole run has started: one worker runs them all."""

# A slow machine is no defect.
hypothesis.settings.register_profile(
    "tierwise", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tierwise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs privileges where there are none, and keep together what shares a server."""
    folders = {item: item.path.relative_to(TESTS).parts[:-1] for item in items}
    if any("lab" in parts for parts in folders.values()):
        missing = ", ".join(check.name for check in missing_for_emulation(examine()))
    for item, parts in folders.items():
        if "lab" in parts and missing:
            item.add_marker(pytest.mark.skip(reason=f"no emulated devices here: missing {missing}"))
        if parts[0] != "unit" and (group := _group_of(item, parts)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))


def _group_of(item: pytest.Item, folders: tuple[str, ...]) -> str | None:
    """Tests of a module that share a server run in one worker; all others wherever a worker is idle."""
    shared = ONE_FOR_ALL.intersection(folders)
    if shared:
        return shared.pop()
    known = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    names = sorted(name for name, found in known.items() if found[-1].scope == "module")
    if not names:
        return None
    indices = item.callspec.indices if hasattr(item, "callspec") else {}
    return "/".join(
        [*folders, item.path.stem, *(f"{name} {indices[name]}" for name in names if name in indices)]
    )


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
