"""Files that a command or a notebook writes: tried before the work for them, and no file of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tierwise.model import output_files
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.recording.buffer_content import BUFFER_FILE
from tierwise.recording.recording import ABOUT_FILE, OBSERVATION_FILE, TABLE_FILES


def write_output_file(path: Path, content: bytes) -> Path:
    """Write a file, make its directory, and return its path. A file of a recording is not replaced."""
    with _writing(path):
        output_files.write_file(path, content)
    return path


def require_writable_output(path: Path | None) -> Path | None:
    """Refuse a file that :func:`write_output_file` would, before the work for it; it returns the path."""
    if path is not None:
        with _writing(path):
            output_files.require_writable(path)
    return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    with os_errors(path, "name a place that you may write to"):
        if path.exists() and _is_of_a_recording(path):
            raise TierwiseError(f"{path} is a file of a recording", "name another file")
        yield


def _is_of_a_recording(path: Path) -> bool:
    if path.with_name(OBSERVATION_FILE).exists():
        return path.name == OBSERVATION_FILE
    beside = all(path.with_name(name).exists() for name in (ABOUT_FILE, *TABLE_FILES))
    return beside and path.name in (ABOUT_FILE, BUFFER_FILE, *TABLE_FILES)
