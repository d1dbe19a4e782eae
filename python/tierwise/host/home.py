"""The home of a program that runs as another user: its files, and a log that only the caller can write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from tierwise.host import ledger
from tierwise.host.users import ServerUser, give


class Home:
    """A directory of the caller's, in the ledger, that no third user may enter.

    In it are ``own``, a directory of the program's user, and the log. The user may pass through the outer
    directory but write nothing there, so he can put no link in the place of the log.
    """

    def __init__(self, prefix: str, user: ServerUser | None) -> None:
        """Make it.

        Args:
            prefix: begins its name.
            user: who the program is; ``None`` for the caller.
        """
        self._made = ledger.directory(prefix, mode=0o700)
        self.user = user
        if user is not None:
            os.chown(self._made.path, -1, user.gid)
            self._made.path.chmod(0o710)
        self.own.mkdir(mode=0o700)
        give(self.own, user)

    @property
    def own(self) -> Path:
        """What the program may write to."""
        return self._made.path / "own"

    @property
    def outer(self) -> Path:
        """What only the caller may write to, and the program may pass through."""
        return self._made.path

    @property
    def log(self) -> Path:
        """What the program printed."""
        return self._made.path / "log"

    @property
    def log_bytes(self) -> int:
        """Size of the log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def read_log(self, start_bytes: int = 0) -> str:
        """The log from a byte on; empty if there is none."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(start_bytes)
            return file.read().decode("utf-8", "replace")

    def remove(self) -> None:
        """Delete it with all that it holds."""
        self._made.remove()


def open_log(path: Path) -> IO[bytes]:
    """Open a log to append to; made if it is not there, and never through a link."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "ab")
