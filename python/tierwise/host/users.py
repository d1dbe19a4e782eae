"""The user that a server runs as: servers refuse root, or should not have it."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tierwise.errors import TierwiseError


@dataclass(frozen=True)
class ServerUser:
    """An unprivileged account. It acts with its primary group alone."""

    name: str
    uid: int
    gid: int


def server_user(preferred: Sequence[str] = (), effective_uid: int | None = None) -> ServerUser | None:
    """The account to run a server as: ``None`` for a caller who is not root and so runs it as himself.

    Args:
        preferred: accounts to take if they exist, best first; ``nobody`` comes last.
        effective_uid: stands for the caller's own.

    Raises:
        TierwiseError: if the caller is root and none of the accounts exists.
    """
    if (os.geteuid() if effective_uid is None else effective_uid) != 0:
        return None
    for name in (*preferred, "nobody"):
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(name, account.pw_uid, account.pw_gid)
    raise TierwiseError("root has no unprivileged user to run a server as", "useradd --system nobody")


def unreachable_part(path: Path, user: ServerUser | None) -> Path | None:
    """The outermost directory on the way to ``path``, or ``path`` itself, that ``user`` may not enter.

    Judged by owner, group and mode. ``None`` if the whole way is open, or if ``user`` is the caller.
    """
    if user is None:
        return None
    absolute = path.absolute()
    for part in [*reversed(absolute.parents), absolute]:
        if not _may_enter(part.stat(), user):
            return part
    return None


def _may_enter(status: os.stat_result, user: ServerUser) -> bool:
    if status.st_uid == user.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == user.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def give(path: Path, user: ServerUser | None) -> None:
    """Make ``user`` the owner of ``path`` (not of what it holds); nothing to do when that is the caller."""
    if user is not None:
        os.chown(path, user.uid, user.gid)
