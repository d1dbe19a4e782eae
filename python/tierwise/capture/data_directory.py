"""Size of an engine's data directory: all its files, including files that a recording did not see."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tierwise.capture.facts import within


def data_directory_bytes(pid: int, root: Path) -> int | None:
    """Size of all files in the working directory of a server; ``None`` if it is gone.

    The rules say whether that is the data directory. Links in it lead to tablespaces or a log elsewhere.

    Args:
        pid: first process of the server.
        root: root of its files, as seen by this process.
    """
    try:
        directory = Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None
    return tree_bytes(within(root, str(directory)), root)


def tree_bytes(directory: Path, root: Path = Path("/")) -> int | None:
    """Size of all files in a directory, links followed, each file once; ``None`` if it cannot be read."""
    if not os.access(directory, os.R_OK | os.X_OK):
        return None
    waiting, seen, size_bytes = [directory], set[tuple[int, int]](), 0
    while waiting:
        place = waiting.pop()
        try:
            status = place.stat()
            known = (status.st_dev, status.st_ino)
            if known in seen:
                continue
            seen.add(known)
            if stat.S_ISDIR(status.st_mode):
                waiting += [_followed(entry, root) for entry in os.scandir(place)]
            elif stat.S_ISREG(status.st_mode):
                size_bytes += status.st_size
        except OSError:
            continue
    return size_bytes


def _followed(entry: os.DirEntry[str], root: Path) -> Path:
    """Target of an entry for a process with that root."""
    path = Path(entry.path)
    return within(root, "/" + str(path.relative_to(root))) if entry.is_symlink() else path
