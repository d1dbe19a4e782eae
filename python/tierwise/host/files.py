"""Files by location: files that processes have open, and files below directories."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_DELETED = " (deleted)"


@dataclass(frozen=True)
class OpenFile:
    """A regular file, by the path that the kernel knows; ``device`` is its file system's device number."""

    path: Path
    device: int


def open_files(pids: Iterable[int]) -> Iterator[OpenFile]:
    """Every regular file open in these processes, once per descriptor; deleted ones by their last path.

    Files that close meanwhile are left out, and so are files that the caller may not see.
    """
    for pid in pids:
        try:
            with os.scandir(f"/proc/{pid}/fd") as descriptors:
                links = [entry.path for entry in descriptors]
        except OSError:
            continue
        for link in links:
            file = _open_file(Path(link))
            if file is not None:
                yield file


def _open_file(link: Path) -> OpenFile | None:
    try:
        path = str(link.readlink())
        status = link.stat() if path.startswith("/") else None
    except OSError:
        return None
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    return OpenFile(Path(path.removesuffix(_DELETED)), status.st_dev)


def files_below(directories: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Files by their real paths, including linked directories: links place roles on other devices."""
    waiting, seen = [path.resolve() for path in directories], set[Path]()
    while waiting:
        directory = waiting.pop()
        if directory in seen:
            continue
        seen.add(directory)
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir():
                    waiting.append(Path(entry.path).resolve())
                elif entry.is_file():
                    path = Path(entry.path).resolve()
                    yield path, path.stat()
            except OSError:
                continue
