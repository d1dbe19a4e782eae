"""SQLite's settings: the PRAGMAs that a study may set, their values, and their display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tierwise.lab.engines.base import ResourceLimits
from tierwise.model.errors import TierwiseError

_CACHE_SHARE = 4
"""Divisor: one quarter of the memory is for pages; the kernel's page cache takes the rest."""

_MOST_DIGITS = 19
"""Of 2^62, the greatest number of any PRAGMA."""


@dataclass(frozen=True)
class _Whole:
    """A whole number."""

    low: int
    high: int = 1 << 31

    def read(self, value: str) -> str | None:
        """The number as SQLite writes it; ``None`` if it is not a number or out of bounds."""
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
            return None
        if not self.low <= int(value) <= self.high:
            return None
        return str(int(value))

    def __str__(self) -> str:
        """The allowed values."""
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class _Word:
    """One of a list of words; SQLite shows most of them as their index, from 0."""

    words: tuple[str, ...]
    refused: frozenset[str] = frozenset()

    def read(self, value: str) -> str | None:
        """The word in lower case; ``None`` if it is not in the list."""
        word = value.lower()
        return word if word in self.words and word not in self.refused else None

    def shown(self, value: str) -> str:
        """The word for a value that SQLite shows as a number or as the word."""
        return self.words[int(value)] if value.isdecimal() else value

    def __str__(self) -> str:
        """The allowed values."""
        return "one of " + ", ".join(word for word in self.words if word not in self.refused)


_BOOLEAN = _Word(("off", "on"))
_KINDS: Mapping[str, _Whole | _Word] = {
    "auto_vacuum": _Word(("none", "full", "incremental")),
    "automatic_index": _BOOLEAN,
    "busy_timeout": _Whole(0),
    "cache_size": _Whole(-(1 << 31)),
    "cache_spill": _Whole(0),
    "foreign_keys": _BOOLEAN,
    "hard_heap_limit": _Whole(0, 1 << 62),
    "journal_mode": _Word(("wal", "delete", "truncate", "persist")),
    "journal_size_limit": _Whole(-1, 1 << 62),
    "mmap_size": _Whole(0, 0),
    "page_size": _Whole(512, 65536),
    "secure_delete": _Word(("off", "on", "fast")),
    "soft_heap_limit": _Whole(0, 1 << 62),
    "synchronous": _Word(("off", "normal", "full", "extra")),
    "temp_store": _Word(("default", "file", "memory"), frozenset({"default"})),
    "threads": _Whole(0, 8),
    "wal_autocheckpoint": _Whole(0),
}
ALLOWED = frozenset(_KINDS)
"""PRAGMAs that a study may set."""
SHOWN = (
    *_KINDS,
    "analysis_limit",
    "application_id",
    "cell_size_check",
    "encoding",
    "freelist_count",
    "fullfsync",
    "ignore_check_constraints",
    "legacy_alter_table",
    "locking_mode",
    "max_page_count",
    "page_count",
    "query_only",
    "read_uncommitted",
    "recursive_triggers",
    "reverse_unordered_selects",
    "trusted_schema",
    "user_version",
)
"""PRAGMAs that report a value."""
_DEFAULTS = {"busy_timeout": "60000", "temp_store": "file", "journal_mode": "wal", "synchronous": "full"}
_FIRST = ("busy_timeout", "page_size", "auto_vacuum")
"""Executed first, in this order: other connections may be active; a log fixes the page settings."""


def check_pragma_values(engine: str, settings: Mapping[str, str]) -> None:
    """Refuse values that SQLite would silently misread."""
    for name, value in settings.items():
        if _KINDS[name].read(value) is None or (name == "page_size" and int(value).bit_count() != 1):
            raise TierwiseError(
                f"engine {engine}: setting {name} cannot be {value!r}", f"give {_wanted(name)}"
            )


def _wanted(name: str) -> str:
    if name == "page_size":
        return "a power of two from 512 to 65536"
    if name == "mmap_size":
        return "0, for what is read from mapped memory cannot be counted"
    return str(_KINDS[name])


def pragmas(settings: Mapping[str, str], limits: ResourceLimits) -> list[tuple[str, str]]:
    """PRAGMAs that each connection executes, in order: checked settings, those from limits, and defaults."""
    given = {name: _KINDS[name].read(value) or value for name, value in settings.items()}
    wanted = {**_DEFAULTS, **_from_limits(limits, given), **given}
    return sorted(wanted.items(), key=lambda pragma: (*_FIRST, pragma[0]).index(pragma[0]))


def _from_limits(limits: ResourceLimits, given: Mapping[str, str]) -> dict[str, str]:
    """Settings from limits. Each connection has its own cache, so the heap limit bounds their sum."""
    settings = {}
    if limits.parallelism is not None:
        settings["threads"] = str(min(limits.parallelism - 1, 8))
    if limits.memory_bytes is not None and "cache_size" not in given:
        cache_bytes = limits.memory_bytes // _CACHE_SHARE
        settings |= {"cache_size": str(-cache_bytes // 1024), "soft_heap_limit": str(cache_bytes)}
    return settings


def shown_pragma_value(name: str, value: str) -> str:
    """A value reported by SQLite, in the words that a study may use."""
    kind = _KINDS.get(name)
    return kind.shown(value) if isinstance(kind, _Word) else value
