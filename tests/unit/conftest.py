"""A unit test starts no process, opens no socket and needs no privilege: whatever does belongs elsewhere."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import drawings
from support.capabilities import without_capabilities

COSTLY = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.system",
        "socket.bind",
        "socket.connect",
        "subprocess.Popen",
    }
)
"""Audit events of what costs time and depends on the machine."""

gc.set_threshold(100_000, 50, 100)
"""What tests leave behind is little, and looking for it often takes a twentieth of their time."""

_refusing = False


class CostlyError(AssertionError):
    """A unit test does what a unit test must not."""


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if _refusing and event in COSTLY:
        raise CostlyError(f"{event} {arguments[:2]}: move this test to tests/integration or tests/lab")


# A hook cannot be taken away again.
sys.addaudithook(_refuse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Refuse it from the first fixture of a test to the last; pytest calls it for all folders."""
    global _refusing  # noqa: PLW0603
    if not item.path.is_relative_to(Path(__file__).parent):
        return (yield)
    _refusing = True
    try:
        with without_capabilities():
            return (yield)
    finally:
        _refusing = False


@pytest.fixture(autouse=True, scope="module")
def own_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What another tierwise left on this machine, or runs on it, changes no test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIERWISE_RUN_DIR", str(tmp_path_factory.mktemp("run")))
        yield


@pytest.fixture(autouse=True, scope="module")
def undrawn() -> Iterator[None]:
    """Charts are left empty, unless a test asks for ``drawn``."""
    with drawings.left_empty():
        yield


@pytest.fixture
def drawn() -> Iterator[None]:
    """Charts are drawn."""
    with drawings.drawn():
        yield
