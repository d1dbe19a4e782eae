"""What an engine's buffer held at the end of a recording: ``buffer.json``, if it was asked for."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from tierwise.model.errors import os_errors
from tierwise.model.input_files import parse_as_model, read_text
from tierwise.model.output_files import open_output_file
from tierwise.results.measurements import TolerantModel

BUFFER_FILE = "buffer.json"
MOST_FILES = 20_000
"""Files that are kept, those with most pages first."""
_FIX = "record again, or delete the file: nothing else in the recording needs it"


class BufferedFile(TolerantModel):
    """The pages of one file in the buffer."""

    path: str = Field(min_length=1)
    """End of the path, such as ``base/5/16397`` or ``shop/orders.ibd``; of its first file."""
    pages: int = Field(ge=0)
    """Its pages in the buffer."""
    dirty_pages: int | None = Field(default=None, ge=0)
    """Of these, pages that are not yet written; ``None`` if not told."""
    pages_by_use: dict[str, int] = {}
    """Pages by what the engine keeps of their use: PostgreSQL's usage count, ``0`` to ``5``, or the part of
    InnoDB's list, ``young`` or ``old``."""


class BufferContent(TolerantModel):
    """The engine's own buffer at one instant, after the last burst."""

    page_bytes: int = Field(gt=0)
    """Size of a page."""
    pages: int = Field(gt=0)
    """All that the buffer has."""
    used_pages: int = Field(ge=0)
    """Those that held a page of a file."""
    files: list[BufferedFile]
    """Those with most pages first, at most 20,000."""

    @property
    def bytes(self) -> int:
        """Size of the buffer."""
        return self.pages * self.page_bytes

    @property
    def used_bytes(self) -> int:
        """What held pages of files."""
        return self.used_pages * self.page_bytes


def write_buffer(folder: Path, content: BufferContent) -> None:
    """Write it into the folder of a recording."""
    path = folder / BUFFER_FILE
    with os_errors(path, "name a new directory with room"), open_output_file(path, "new") as file:
        file.write(content.model_dump_json(indent=1, exclude_none=True).encode())


def read_buffer(folder: Path) -> BufferContent:
    """Read it from the folder of a recording."""
    path = folder / BUFFER_FILE
    return parse_as_model(BufferContent, read_text(path, _FIX, in_folder=True), str(path), _FIX)
