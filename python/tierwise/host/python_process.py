"""Python code in a process of its own, with a search path that neither a directory nor a variable can add to.

The child runs isolated (``-I -S``): without its working directory, variables of Python, the user's packages
and ``.pth`` files. Its search path is the caller's own, less what others may write.
"""

from __future__ import annotations

import functools
import grp
import os
import pwd
import stat
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tierwise.host.users import ACCOUNT, ServerUser, server_user, unreachable_part, unreadable_part
from tierwise.model.errors import TierwiseError

_PACKAGE = Path(__file__).resolve().parents[1]
_TIERWISE = _PACKAGE.parent
"""Directory that contains the package: it must be on the child's search path."""
_OPTIONS = ("-I", "-S", "-X", "utf8")
_BECOME = "import os; os.setgroups([]); os.setresgid(*[{gid}] * 3); os.setresuid(*[{uid}] * 3)"


@dataclass(frozen=True)
class ProcessCommand:
    """A program with its arguments, and the account to start it as."""

    argv: Sequence[str]
    user: ServerUser | None
    """``None`` for the caller."""


def unprivileged_python(
    name: str,
    code: str,
    arguments: Sequence[str | Path] = (),
    *,
    imports: Sequence[str] = (),
    user: ServerUser | None = None,
) -> ProcessCommand:
    """Code that runs as tierwise's own account if root calls, else as the caller.

    The account starts the interpreter itself if it can read all that the code may import. Else root does,
    imports the modules, and becomes the account before the code runs. Root imports only from directories
    that no third user may write. Somebody else's account is always become: what else runs as that account can
    then neither trace the child nor take what it has open.

    Args:
        name: for lists of processes; the child's ``sys.argv[0]``.
        arguments: the child's ``sys.argv[1:]``.
        user: another account in place of tierwise's own; for root only.
    """
    account = user or server_user()
    path = child_python_path()
    if account is None or (user is None and _is_open(tuple(path), account)):
        return ProcessCommand(_argv(name, path, [code], arguments), account)
    become = _BECOME.format(uid=account.uid, gid=account.gid)
    return ProcessCommand(
        _argv(name, path, [f"import {', '.join(imports or ['sys'])}", become, code], arguments), None
    )


def own_python(module: str, arguments: Sequence[str | Path] = ()) -> ProcessCommand:
    """``main`` of one of tierwise's own modules, as the caller."""
    return ProcessCommand(
        _argv(module, child_python_path(), [f"from {module} import main; main()"], arguments), None
    )


def child_python_path() -> list[str]:
    """Directories of the caller's ``sys.path`` that may be on a child's, with links resolved.

    The working directory is left out, unless tierwise itself lies there; for root, so is each directory that
    a third user may write.

    Raises:
        TierwiseError: if others may write to tierwise or to the directories of Python and its packages, and
            root calls.
    """
    working = _working_directory()
    entries = [Path(entry).resolve() for entry in sys.path if Path(entry).is_absolute()]
    kept = [path for path in entries if path == _TIERWISE or (path.exists() and path != working)]
    if os.geteuid() == 0:
        installed = {Path(path).resolve() for path in sysconfig.get_paths().values()}
        for needed in (_PACKAGE, *(path for path in kept if path in installed)):
            _require_unwritable(needed)
        kept = [path for path in kept if path == _TIERWISE or part_others_may_write(path) is None]
    return list(dict.fromkeys(map(str, kept if _TIERWISE in kept else [_TIERWISE, *kept])))


def _require_unwritable(path: Path) -> None:
    part = part_others_may_write(path)
    if part is not None:
        raise TierwiseError(
            f"{part} can be written by others, who could have their code run as root",
            f"chmod go-w {part} if it is yours, or install tierwise elsewhere",
        )


def part_others_may_write(path: Path) -> Path | None:
    """The outermost part of a path, without links, in which a third user could replace or add something.

    Trusted are root, the caller and the owner of tierwise's files, but never tierwise's own account.
    """
    trusted = {0, os.geteuid(), _PACKAGE.stat().st_uid} - _account()
    for part in [*reversed(path.parents), path]:
        status = part.lstat()
        if status.st_uid not in trusted:
            return part
        # Entries of a sticky directory can be replaced by their owners alone.
        if part != path and status.st_mode & stat.S_ISVTX:
            continue
        if status.st_mode & stat.S_IWOTH:
            return part
        if status.st_mode & stat.S_IWGRP and not _members(status.st_gid) <= trusted:
            return part
    return None


def _argv(name: str, path: Sequence[str], code: Sequence[str], arguments: Sequence[str | Path]) -> list[str]:
    first = f"import sys; sys.path[:] = {list(path)!r}; del sys.argv[0]"
    program = str(Path(sys.executable).resolve())
    return [program, *_OPTIONS, "-c", "\n".join([first, *code]), name, *map(str, arguments)]


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was deleted
        return None


def _account() -> set[int]:
    try:
        return {pwd.getpwnam(ACCOUNT).pw_uid}
    except KeyError:  # it is made on first use
        return set()


@functools.cache
def _members(gid: int) -> set[int]:
    """Accounts in a group."""
    accounts = pwd.getpwall()
    try:
        names = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        names = set()
    return {account.pw_uid for account in accounts if account.pw_gid == gid or account.pw_name in names}


@functools.cache
def _is_open(path: tuple[str, ...], user: ServerUser) -> bool:
    """Whether an account can run the interpreter and read all packages and modules of a search path."""
    if unreachable_part(Path(sys.executable).resolve(), user) is not None:
        return False
    entries = [Path(entry) for entry in path]
    modules = [child for entry in entries if entry.is_dir() for child in entry.iterdir() if child.exists()]
    return all(unreadable_part(file, user) is None for file in [*entries, *modules])
