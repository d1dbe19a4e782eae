"""The unprivileged account, without a login, that tierwise's servers and libraries run as.

tierwise creates it on first use as root. The account owns no other data on the machine.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.output_files import open_output_file

ACCOUNT = "tierwise"
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_NO_LOGIN = ("nologin", "false")
_BY_HAND = f"useradd --system --no-create-home --shell /usr/sbin/nologin {ACCOUNT}"


@dataclass(frozen=True)
class ServerUser:
    """An unprivileged account. It acts with its primary group alone."""

    name: str
    uid: int
    gid: int


def server_user(effective_uid: int | None = None) -> ServerUser | None:
    """The account to run a server as; ``None`` for a caller who is not root and runs it as himself.

    Args:
        effective_uid: replaces the caller's own.

    Raises:
        TierwiseError: if the caller is root, and the account cannot be made, has a login or is root.
    """
    if (os.geteuid() if effective_uid is None else effective_uid) != 0:
        return None
    account = _existing() or _created()
    if account.pw_uid == 0 or account.pw_gid == 0 or Path(account.pw_shell).name not in _NO_LOGIN:
        raise TierwiseError(
            f"the account {ACCOUNT} is somebody's: it has a login or is root",
            f"rename it; tierwise needs one of its own, as by {_BY_HAND}",
        )
    return ServerUser(account.pw_name, account.pw_uid, account.pw_gid)


def existing_server_user() -> ServerUser | None:
    """The account of :func:`server_user` if it exists and the caller is root."""
    account = _existing() if os.geteuid() == 0 else None
    return None if account is None else ServerUser(account.pw_name, account.pw_uid, account.pw_gid)


def _existing() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        return None


def _created() -> pwd.struct_passwd:
    program = shutil.which("useradd", path=_PATH) or "/usr/sbin/useradd"
    options = [*_BY_HAND.split()[1:-1], *_group_options(), "--home-dir", "/nonexistent"]
    command = [program, *options, ACCOUNT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": _PATH})
        problem = done.stderr.strip().splitlines()[-1:] or ["useradd failed"]
    except OSError as error:
        problem = [f"useradd: {error.strerror}"]
    account = _existing()  # also where another process has made it meanwhile
    if account is None:
        raise HostError(f"root has no account to run a server as: {problem[0]}", _BY_HAND)
    return account


def _group_options() -> list[str]:
    """A group of the account's own; one that an earlier account left is taken if nobody is in it.

    Raises:
        TierwiseError: if others are members of a group of that name.
    """
    try:
        group = grp.getgrnam(ACCOUNT)
    except KeyError:
        return ["--user-group"]
    users = [entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group.gr_gid]
    if members := [*group.gr_mem, *users]:
        raise TierwiseError(
            f"the group {ACCOUNT} is somebody's: {', '.join(members)} belongs to it",
            "rename it; tierwise needs one of its own",
        )
    return ["--gid", ACCOUNT]


def account_ids(user: ServerUser | None) -> tuple[int, int] | None:
    """User and group of an account; ``None`` for the caller."""
    return None if user is None else (user.uid, user.gid)


def unreachable_part(path: Path, user: ServerUser | None) -> Path | None:
    """The outermost directory in ``path``, or ``path`` itself, that ``user`` may not enter.

    Judged by owner, group and mode, also of the parts that links lead to. ``None`` if all are open, or if
    ``user`` is the caller.
    """
    if user is None:
        return None
    for named in dict.fromkeys((path.absolute(), path.resolve())):
        for part in [*reversed(named.parents), named]:
            if not _may(part.stat(), user, os.X_OK):
                return part
    return None


def unreadable_part(path: Path, user: ServerUser | None) -> Path | None:
    """The outermost directory in ``path`` that ``user`` may not enter, or ``path`` if he may not read it."""
    closed = unreachable_part(path.parent, user)
    if closed is not None or user is None:
        return closed
    status = path.stat()
    access = os.R_OK | os.X_OK if stat.S_ISDIR(status.st_mode) else os.R_OK
    return None if _may(status, user, access) else path


def require_reachable(name: str, path: Path, user: ServerUser | None) -> None:
    """Refuse a directory that ``user`` may not enter; ``name`` is its purpose, for the message."""
    closed = unreachable_part(path, user)
    if closed is not None and user is not None:
        raise TierwiseError(f"{name}: the user {user.name} may not enter {closed}", f"chmod o+x {closed}")


def _may(status: os.stat_result, user: ServerUser, access: int) -> bool:
    """Whether ``user`` has all rights of ``access`` (``os.R_OK``, ``os.X_OK``)."""
    shift = 6 if status.st_uid == user.uid else 3 if status.st_gid == user.gid else 0
    return status.st_mode >> shift & access == access


def give_ownership(path: Path, user: ServerUser | None) -> None:
    """Make ``user`` the owner of ``path`` (not of its contents); do nothing if that is the caller.

    The path may lie in a directory of that user: what he has put there in the meantime is refused.

    Raises:
        TierwiseError: if it is not the caller's, or has a second name.
    """
    if user is None:
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        linked = status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)
        if status.st_uid != os.geteuid() or linked:
            raise TierwiseError(f"{path} was replaced by another user", "see what runs as that user")
        os.fchown(descriptor, user.uid, user.gid)
    finally:
        os.close(descriptor)


def write_file_for_user(user: ServerUser | None, path: Path, text: str) -> None:
    """Write a new file, which only ``user`` may read, also into a directory of his."""
    with open_output_file(path, "new", in_foreign=True) as file:
        file.write(text.encode())
        if user is not None:
            os.fchown(file.fileno(), user.uid, user.gid)
