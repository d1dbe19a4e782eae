"""RocksDB's options by name, through the database's options file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from rocksdict import Cache, Options

from tierwise.engines.rocksdb.files import newest_options, read_options
from tierwise.model.errors import TierwiseError
from tierwise.model.names import did_you_mean

CACHE = "block_cache"
"""Size of the block cache in bytes: the only option that RocksDB's file leaves out."""

SYNC = "sync"
"""Whether a commit waits for the flush of the log: an option of each write, in no file."""

REPAIR = "repair"
"""Whether to repair the database before it is opened; only the engine sets it."""

_CACHE_BYTES = 32 << 20


def wants_sync(settings: Mapping[str, str]) -> bool:
    """The setting ``sync``: on unless it is off.

    Raises:
        TierwiseError: for any other value.
    """
    value = settings.get(SYNC, "on")
    if value not in ("on", "off"):
        raise TierwiseError(f"setting {SYNC} cannot be {value!r}", "give on or off")
    return value == "on"


class NamedOptions:
    """The options of an existing database, with some of them changed."""

    def __init__(self, database: Path, changes: Mapping[str, str]) -> None:
        """Read the options.

        Args:
            database: directory with its newest ``OPTIONS`` file.
            changes: values by name, as the file has them.

        Raises:
            TierwiseError: naming the option that is unknown or has a bad value.
        """
        self._values = {CACHE: str(_CACHE_BYTES), **read_options(database)}
        for name in changes.keys() - self._values.keys():
            raise TierwiseError(
                f"setting {name} is unknown to RocksDB",
                did_you_mean(name, self._values, "see its OPTIONS file"),
            )
        self._text = newest_options(database).read_text()
        for name, value in changes.items():
            line = f"  {name}={value}".replace("\\", r"\\")
            self._text = re.sub(rf"(?m)^  {name}=.*$", line, self._text)
        self._changes = changes
        self._cache_bytes = self._whole(CACHE, changes.get(CACHE, str(_CACHE_BYTES)))

    @property
    def cache_bytes(self) -> int:
        """Size of the block cache."""
        return self._cache_bytes

    def load(self, scratch: Path) -> tuple[Options, dict[str, Options]]:
        """Let RocksDB parse the options; gives those of the database, and of each column family.

        Args:
            scratch: a writable directory.

        Raises:
            TierwiseError: naming the option whose value RocksDB refuses.
        """
        scratch.mkdir(exist_ok=True)
        (scratch / "OPTIONS-000001").write_text(self._text)
        (scratch / "rocksdict-config.json").write_text(
            json.dumps({"raw_mode": True, "prefix_extractors": {}})
        )
        try:
            return Options.load_latest(str(scratch), cache=Cache(self._cache_bytes))
        except Exception as error:
            named = next((name for name in self._changes if name in str(error)), ", ".join(self._changes))
            raise TierwiseError(f"setting {named}: {error}", "choose a value that RocksDB takes") from None

    @staticmethod
    def _whole(name: str, value: str) -> int:
        if not value.isdecimal():
            raise TierwiseError(f"setting {name}: {value!r} is no number of bytes", "give a whole number")
        return int(value)
