"""Checks how the SQLite of the installed tierwise was compiled: ``PYTHON tools/check_sqlite.py``.

The flags are in .cargo/config.toml. Without them SQLite calls ``fsync``, which also flushes a file's times.
Reads must be ``pread64``: with ``lseek`` and ``read``, each would be two calls. It needs ``strace``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

_WORK = """
import json, sys
from tierwise import _core
places = dict.fromkeys(["data", "log", "doublewrite", "temp", "system"], sys.argv[1])
address = json.dumps({"places": places, "pragmas": [["journal_mode", "delete"], ["synchronous", "full"]]})
for statement in ("CREATE TABLE t (n)", "INSERT INTO t VALUES (1)", "SELECT n FROM t"):
    database = _core.SqliteDatabase(address)
    database.query(statement)
    database.close()
"""
_CALL = re.compile(r"(\w+)\(\d+<([^>]*)>")
_CALLS = "fdatasync,fsync,lseek,read,pread64,write,pwrite64"


def calls_to_files() -> Counter[str]:
    """How often SQLite made each system call to the files of a small database."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "calls"
        place = Path(directory).resolve() / "database"
        place.mkdir()
        trace = ["strace", "-f", "-y", "-e", f"trace={_CALLS}", "-o", str(log)]
        subprocess.run([*trace, sys.executable, "-c", _WORK, str(place)], check=True)
        matches = _CALL.findall(log.read_text("utf-8", "replace"))
    return Counter(call for call, path in matches if path.startswith(f"{place}/"))


def main() -> int:
    """Print the calls; gives 1 if one is not as the flags ask."""
    calls = calls_to_files()
    sys.stdout.write(", ".join(f"{call}: {count}" for call, count in sorted(calls.items())) + "\n")
    wanted = calls["fdatasync"] and calls["pread64"] and calls["pwrite64"]
    if not wanted or calls.keys() & {"fsync", "lseek", "read", "write"}:
        sys.stderr.write("SQLite was compiled without the flags of .cargo/config.toml\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
