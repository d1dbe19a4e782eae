"""An observation that fails leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.capture import observe
from tierwise.capture.sql_session import Dsn, Reading
from tierwise.model.errors import TierwiseError


class Server:
    """A server that answers until its catalogue is read."""

    error: BaseException

    def __init__(self, _dsn: str = "") -> None:
        """Connect."""

    def read(self) -> Reading:
        """No counters."""
        return Reading({}, "")

    def second(self) -> Server:
        """Another session."""
        return self

    def watch(self) -> None:
        """Prepare."""

    def close(self) -> None:
        """Disconnect."""

    def sizes(self) -> None:
        """Fail."""
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TierwiseError("no client session was seen", "")])
def test_a_failed_observation_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(Server, "error", error, raising=False)
    monkeypatch.setattr(observe, "SESSIONS", {"postgresql": Server})
    with pytest.raises(type(error)):
        observe.observe(Dsn("postgresql", "postgresql://server"), tmp_path / "out", 1.0)
    assert not list(tmp_path.iterdir())
