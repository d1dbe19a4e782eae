"""Files that are written where another user may have put something: never through a link of his."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from tierwise.model.errors import TierwiseError

_ROOT = 0
_PART_BYTES = 64 << 10


def write_file(path: Path, content: bytes) -> None:
    """Write a file: the old one stays until the new one is whole.

    A link is followed if the caller or root made it. A pipe or a device is written to.

    Raises:
        TierwiseError: if another user made the link.
        OSError: if it cannot be written.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        _put_in_place(path, content, None)
        return
    if stat.S_ISREG(status.st_mode):
        _put_in_place(path, content, status if status.st_uid == os.geteuid() else None)
        return
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    if stat.S_ISLNK(status.st_mode):
        if status.st_uid not in (os.geteuid(), _ROOT):
            raise TierwiseError(f"{path} is a link that another user made", "remove it, or name another file")
        flags |= os.O_CREAT | os.O_TRUNC
    else:
        flags |= os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        os.set_blocking(file.fileno(), True)  # a pipe without a reader was refused
        file.write(content)


def open_own(path: Path, mode: Literal["a", "w"]) -> IO[bytes]:
    """Open a file of the caller's own to append to it or write it anew; a new one is readable for him only.

    Raises:
        TierwiseError: if it is a link, no regular file, another user's, or has a second name.
        OSError: if it cannot be opened.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | (os.O_APPEND if mode == "a" else 0), 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_own(path) from None
        raise
    file = os.fdopen(descriptor, "a+b" if mode == "a" else "r+b")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink != 1:
        file.close()
        raise _not_own(path)
    if mode == "w":
        file.truncate(0)
    return file


def append_line(path: Path, line: bytes) -> None:
    """Append a line to a file of the caller's own and force it to disk; a last line cut short goes first.

    Raises:
        TierwiseError: as :func:`open_own`.
        OSError: if it cannot be written.
    """
    with open_own(path, "a") as file:
        file.truncate(_whole_bytes(file))
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


def require_own_directory(path: Path) -> None:
    """Refuse what is no directory of the caller's: a link, or one that another user owns or may write to.

    Raises:
        TierwiseError: naming it.
        OSError: if there is none.
    """
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise _not_own(path)
    if status.st_mode & stat.S_IWOTH:
        raise TierwiseError(
            f"every user may write to {path}", "run chmod o-w on it, or name another directory"
        )


def _put_in_place(path: Path, content: bytes, old: os.stat_result | None) -> None:
    draft = path.with_name(f".tierwise-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o666), "wb") as file:
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            file.write(content)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _whole_bytes(file: IO[bytes]) -> int:
    """Bytes up to the last line feed."""
    at = file.seek(0, os.SEEK_END)
    while at > 0:
        start = max(at - _PART_BYTES, 0)
        file.seek(start)
        if (last := file.read(at - start).rfind(b"\n")) >= 0:
            return start + last + 1
        at = start
    return 0


def _not_own(path: Path) -> TierwiseError:
    return TierwiseError(
        f"{path} is a link or belongs to another user: nothing is written there",
        "name a directory of your own",
    )
