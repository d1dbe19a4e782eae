"""Files and folders that tierwise makes, so that no other user of the machine can turn them elsewhere.

A path is walked from the root by descriptors. Each directory in it must belong to root or the caller, and for
root, others must not be able to rename what is in it. Such a path stays the same file for as long as it is
used. Under ``sudo``, the user who called it counts as the caller.

Each function raises a :class:`TierwiseError` that names the file or the directory through which another user
could turn the path elsewhere, and :class:`OSError` for what the system refuses.
"""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from tierwise.model.errors import TierwiseError

How = Literal["new", "replace", "append"]
"""A file that must not exist yet; one whose content is replaced; one that is appended to."""

_WALKED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe would wait for its reader.
_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FLAGS: dict[How, int] = {"new": os.O_EXCL, "replace": 0, "append": os.O_APPEND}
_MOST_LINKS = 40
_PART_BYTES = 64 << 10
_PARENTS_MODE = 0o755
_PRIVATE = 0o700
_ANOTHER = "name a directory of your own, to which nobody else may write"


def make_new_folder(
    path: Path, mode: int = _PRIVATE, owner: tuple[int, int] | None = None, *, in_foreign: bool = False
) -> int:
    """Make a folder in an existing directory; give its inode number.

    Args:
        mode: its permissions, whatever the umask.
        owner: user and group that get it; -1 keeps one.
        in_foreign: take a directory of another user, who may then rename the folder: use
            :func:`rename_proof_path`.
    """
    with _parent_of(path, foreign=in_foreign) as (parent, name):
        os.mkdir(name, _PRIVATE, dir_fd=parent)
        with _opened(name, _FOLDER, parent) as folder:
            _require_own(os.fstat(folder), path)
            os.fchmod(folder, mode)
            if owner is not None:
                os.fchown(folder, *owner)
            return os.fstat(folder).st_ino


def make_own_folder(path: Path, mode: int = _PRIVATE, *, empty: bool = False) -> None:
    """Make a folder and those above it; an existing one must be the caller's.

    An existing one keeps its mode; with ``empty``, it must be empty and gets the mode.
    """
    with _parent_of(path, make=True, follow=True) as (parent, name):
        made = _mkdir(name, parent)
        with _opened(name, _FOLDER, parent) as folder:
            _require_closed(os.fstat(folder), path)
            with os.scandir(folder) as entries:
                if empty and any(entries):
                    raise TierwiseError(f"{path} is not empty", "name a new directory")
            if made or empty:
                os.fchmod(folder, mode)


def require_own_parents(path: Path) -> None:
    """Refuse a path that another user can turn elsewhere; missing directories in it are made."""
    with _parent_of(path, make=True):
        pass


@contextmanager
def rename_proof_path(folder: Path) -> Iterator[Path]:
    """A path of a folder of the caller's that leads there even after somebody renamed it.

    It is valid in this process only.
    """
    with _opened(str(folder), _FOLDER, None) as descriptor:
        _require_own(os.fstat(descriptor), folder)
        yield Path(f"/proc/self/fd/{descriptor}")


def open_output_file(path: Path, how: How, mode: int = 0o600, *, in_foreign: bool = False) -> IO[bytes]:
    """Open a regular file of the caller's for writing, never through a link.

    A pipe and a device are refused too.

    Args:
        path: of the file, in an existing directory.
        mode: permissions of a new file, less the umask.
        in_foreign: take a directory of another user, who may then rename the file: write to what is open.
    """
    with _parent_of(path, foreign=in_foreign) as (parent, name):
        try:
            descriptor = os.open(name, _FILE | _FLAGS[how], mode, dir_fd=parent)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _is_a_link(path) from None
            if error.errno == errno.ENXIO:
                raise _not_a_file(path) from None
            raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise _not_a_file(path)
        _require_own(status, path)
        if how == "replace":
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "a+b" if how == "append" else "w+b")


def append_line(path: Path, line: bytes) -> None:
    """Append a line to a file of the caller's and force it to disk; a last line cut short goes first."""
    with open_output_file(path, "append") as file:
        file.truncate(_whole_bytes(file))
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file that others may read; make missing directories. An old file stays until the new is whole.

    A pipe or a device of the caller's or root's is written to. A link in the place of the file is refused,
    whoever owns it: root owns the links in an archive that root has unpacked.
    """
    data = content.encode() if isinstance(content, str) else content
    with _target(path, make=True) as (parent, name, status):
        if status is None or stat.S_ISREG(status.st_mode):
            _replace(name, parent, data, status)
            return
        # What is still a link is in /proc, such as /dev/stdout, and leads to an open file without a name.
        followed = 0 if stat.S_ISLNK(status.st_mode) else os.O_NOFOLLOW
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | followed
        with os.fdopen(os.open(name, flags, 0o666, dir_fd=parent), "wb") as file:
            os.set_blocking(file.fileno(), True)  # a pipe without a reader was refused
            file.write(data)


def require_writable(path: Path) -> None:
    """Refuse a path that :func:`write_file` would, before the work for its content; nothing is left there."""
    folder = path.absolute().parent
    while not os.path.lexists(folder):
        folder = folder.parent
    exists = folder == path.absolute().parent
    with _target(path if exists else folder / path.name, make=False) as (parent, _, status):
        if not exists or status is None or stat.S_ISREG(status.st_mode):
            draft, descriptor = _draft(parent)
            os.close(descriptor)
            os.unlink(draft, dir_fd=parent)
        elif stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


@contextmanager
def _target(path: Path, *, make: bool) -> Iterator[tuple[int, str, os.stat_result | None]]:
    """The directory and the name of a file to write, and what is there under that name now."""
    in_dev = path.absolute().is_relative_to("/dev")  # such as /dev/stdout, a link of the machine's
    with _parent_of(path, make=make, follow=in_dev) as (parent, name):
        status = _status(name, parent)
        if status is not None:
            _require_own(status, path)
            if stat.S_ISLNK(status.st_mode) and status.st_dev != _proc():
                raise _is_a_link(path)
        yield parent, name, status


def _draft(parent: int) -> tuple[str, int]:
    """A new file under a name of its own, and its descriptor."""
    draft = f".tierwise-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return draft, os.open(draft, flags, 0o666, dir_fd=parent)


def _replace(name: str, parent: int, data: bytes, old: os.stat_result | None) -> None:
    draft, descriptor = _draft(parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            file.write(data)
        os.replace(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=parent)
        raise


def require_own_directory(path: Path) -> None:
    """Refuse what is no directory of the caller's: a link, or one that another user owns or may write to."""
    with _parent_of(path) as (parent, name), _opened(name, _FOLDER, parent) as folder:
        _require_closed(os.fstat(folder), path)


def require_own_file(path: Path, fix: str) -> None:
    """Refuse a file that orders what root does, but that another user owns, may write to or may replace."""
    if os.geteuid() != 0:
        return
    try:
        with _parent_of(path, follow=True) as (parent, name):
            _require_closed(os.stat(name, dir_fd=parent, follow_symlinks=False), path)
    except TierwiseError as error:
        raise TierwiseError(error.message, fix) from None


def _mkdir(name: str, parent: int) -> bool:
    try:
        os.mkdir(name, _PRIVATE, dir_fd=parent)
    except FileExistsError:
        return False
    return True


@contextmanager
def _parent_of(
    path: Path, *, make: bool = False, follow: bool = False, foreign: bool = False
) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory that has the last part of a path, and that part.

    Args:
        follow: also follow a link in the place of the last part.
        foreign: take directories of other users. Their links are never followed.
    """
    walked, left = Path("/"), list(reversed((Path.cwd() / path).parts[1:])) or ["."]
    directory, links = os.open(walked, _WALKED), 0
    try:
        while True:
            if not foreign:
                _require_closed(os.fstat(directory), walked)
            name = left.pop()
            status = _status(name, directory)
            is_link = status is not None and stat.S_ISLNK(status.st_mode)
            if status is not None and is_link and (left or (follow and status.st_dev != _proc())):
                _require_own(status, walked / name)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                target = Path(os.readlink(name, dir_fd=directory))
                left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
                if target.is_absolute():
                    walked, before = Path("/"), directory
                    directory = os.open(walked, _WALKED)
                    os.close(before)
                continue
            if not left:
                yield directory, name
                return
            if status is None and make and _mkdir(name, directory):
                with _opened(name, _FOLDER, directory) as made:
                    os.fchmod(made, _PARENTS_MODE)  # whatever the umask
            walked, before = walked / name, directory
            directory = os.open(name, _WALKED, dir_fd=directory)
            os.close(before)
    except OSError as error:
        if error.filename is not None:
            error.filename = str(path)
        raise
    finally:
        os.close(directory)


def _proc() -> int:
    """The device number of /proc, whose links the kernel alone can follow."""
    return Path("/proc").stat().st_dev


def _status(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


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


@contextmanager
def _opened(name: str, flags: int, parent: int | None) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _require_closed(status: os.stat_result, path: Path) -> None:
    """Refuse a directory in which another user could replace a file of the caller's."""
    _require_own(status, path)
    # Where it is sticky, only its owner renames a file. Some foreign file systems show each directory as open
    # to all, so a caller without root decides for himself.
    if status.st_mode & stat.S_ISVTX or os.geteuid() != 0:
        return
    # A group of the owner's number is his private one.
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid != status.st_uid
    if status.st_mode & stat.S_IWOTH or by_group:
        raise TierwiseError(f"{path} can be written by others", f"chmod go-w {path}, or {_ANOTHER}")


def _require_own(status: os.stat_result, path: Path) -> None:
    if status.st_uid not in caller_user_ids():
        raise TierwiseError(f"{path} belongs to {user_name(status.st_uid)}", _ANOTHER)


def caller_user_ids() -> set[int]:
    """Root, the caller, and whoever called ``sudo``."""
    sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid(), *([int(sudo)] if sudo.isdecimal() else [])}


def user_name(uid: int) -> str:
    """Name of an account, or its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _is_a_link(path: Path) -> TierwiseError:
    return TierwiseError(f"{path} is a symbolic link", "remove it, or name a file")


def _not_a_file(path: Path) -> TierwiseError:
    return TierwiseError(f"{path} is a pipe, a device or has a second name", "name a new file")


SCHEMA_VERSION = 1
"""It rises with every change of a name, a unit or a meaning."""
