"""Home directory of a program that runs as another user, with a log that only the caller can write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from tierwise.host import ledger
from tierwise.host.users import ServerUser, ids
from tierwise.model.output_files import new_folder, open_file

_MOST_BYTES = 8 << 20
"""Read of a log; the rest stays on disk."""


class Home:
    """A directory of the caller's, entered in the ledger, that no third user may enter.

    It contains ``own``, a directory of the program's user, and the log. The user may pass through the outer
    directory but may not write in it, so he cannot replace the log by a link.
    """

    def __init__(self, prefix: str, user: ServerUser | None) -> None:
        """Make the directory.

        Args:
            prefix: begins its name.
            user: the program's account; ``None`` for the caller.
        """
        self._made = ledger.passage(prefix, user)
        self.user = user
        new_folder(self.own, owner=ids(user))

    @property
    def own(self) -> Path:
        """Directory that the program may write to."""
        return self._made.path / "own"

    @property
    def outer(self) -> Path:
        """Directory that only the caller may write to; the program may pass through it."""
        return self._made.path

    @property
    def log(self) -> Path:
        """File with the program's output."""
        return self._made.path / "log"

    @property
    def log_bytes(self) -> int:
        """Size of the log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def read_log(self, start_bytes: int = 0) -> str:
        """The log from byte ``start_bytes`` on, at most its last 8 MiB; empty if there is none."""
        return read_end(self.log, start_bytes)

    def remove(self) -> None:
        """Delete the directory with all its files."""
        self._made.remove()


def read_end(path: Path, start_bytes: int = 0) -> str:
    """A log from byte ``start_bytes`` on, or its last 8 MiB if there is more; empty if there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(start_bytes, file.seek(0, os.SEEK_END) - _MOST_BYTES))
        return file.read(_MOST_BYTES).decode("utf-8", "replace")


def open_log(path: Path) -> IO[bytes]:
    """Open a log to append to; create it if missing, and never follow a link."""
    return open_file(path, "append")
