"""A starter workload for users to modify."""

from __future__ import annotations

from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA
from tierwise.model.output_files import new_folder, require_own_parents, write_file

_TEMPLATE = DATA / "templates" / "workload"


def write(folder: Path) -> list[Path]:
    """Make a new folder with a small workload that runs unchanged; return its files.

    Raises:
        TierwiseError: if the folder already exists or cannot be made.
    """
    try:
        require_own_parents(folder)
        new_folder(folder, 0o755)
        written = []
        for source in sorted(
            (DATA / "templates" / "workload").iterdir(), key=lambda one: one.name, reverse=True
        ):
            text = source.read_text("utf-8").replace("FOLDER", str(folder))
            write_file(folder / source.name, text)
            written.append(folder / source.name)
        return written
    except FileExistsError as error:
        raise TierwiseError(f"{folder} is there already", "name a folder that is not") from error
    except OSError as error:
        raise TierwiseError(f"{folder}: {error.strerror}", "name a folder that can be made") from error
