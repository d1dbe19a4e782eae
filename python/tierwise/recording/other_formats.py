"""Files of other tools that someone may give as a recording: named, with what tierwise accepts instead."""

from __future__ import annotations

import re
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import open_regular

_LOOKED_AT_BYTES = 64 << 10
_FIX = "name a folder that tierwise record has written to its end"
_OBSERVE = "tierwise observe asks a server for its waits over SQL, and tierwise record counts both"
_NO_ROLES = "which tells neither roles nor waits"
_DEVICE = "which measures a device, as tierwise device probe does"
_TOOLS = (
    (r"avg-cpu:.*%iowait|^Device:?\s.*(?:r/s|tps)", "an output of iostat", _NO_ROLES),
    (r"^procs -+memory-+|^Linux .*\n\n.*%iowait", "an output of vmstat or sar", _NO_ROLES),
    (r"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Z]", "an output of blkparse", _NO_ROLES),
    (r"AWR Report|WORKLOAD REPOSITORY|STATSPACK", "a report of Oracle", "an engine unknown here"),
    (r'"fio version"|^fio-\d', "an output of fio", _DEVICE),
    (r"^\[global\]|^rw=|ioengine=", "a job file of fio", _DEVICE),
    (r"# Query 1: |# Time: \d|slow query", "a log of slow queries", "which tells no requests of files"),
    (r"^PAR1", "a single table", "while a recording is a folder with about.json"),
)


def refuse_file(path: Path) -> None:
    """Refuse a file given as a recording, which is a folder; nothing happens if it is one, or missing.

    Raises:
        TierwiseError: naming the tool that wrote it, if it is known.
    """
    if not path.is_file():
        return
    with open_regular(path, _FIX, most_bytes=1 << 62) as file:
        text = file.read(_LOOKED_AT_BYTES).decode("utf-8", "replace")
    for pattern, what, why in _TOOLS:
        if re.search(pattern, text, re.MULTILINE):
            raise TierwiseError(f"{path} is {what}, {why}", f"{_FIX}; {_OBSERVE}")
    raise TierwiseError(f"{path} is no folder", f"{_FIX}; {_OBSERVE}")
