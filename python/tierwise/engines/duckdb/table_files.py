"""Tables as files, for engines that load files faster than rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tierwise import _core

_ROWS = 1_000_000


def written(source: Mapping[str, Any], directory: Path) -> Iterator[Path]:
    """Rows of a table in files of about a million: lines of fields that ``|`` separates, in order.

    Args:
        source: from a program's table: ``table``, ``scale_factor``, and ``refresh_sets`` for refresh data.
        directory: holds one of the files at a time; the next one replaces it.
    """
    arguments = source["table"], source["scale_factor"]
    refresh_sets = source.get("refresh_sets")
    parts = -(-_core.tpch_rows(*arguments, refresh_sets) // _ROWS)
    file = directory / f"{source['table']}.tbl"
    for part in range(1, parts + 1):
        # The directory is another user's, so a file or link that is there already is not written to.
        file.unlink(missing_ok=True)
        with file.open("xb") as made:
            _core.write_tpch(*arguments, part, parts, f"/proc/self/fd/{made.fileno()}", refresh_sets)
        yield file
    file.unlink()
