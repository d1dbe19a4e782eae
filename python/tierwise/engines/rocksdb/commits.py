"""Sessions of the load of commits on keys, and a read of all of them as a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tierwise.results.faults import IntegrityCheck

_DONE = b"commits/done/"
_ITEM = b"commits/item/"


class Store(Protocol):
    """What a session needs of the database."""

    def write(self, changes: Mapping[bytes, bytes | None], /) -> None:
        """Write one batch."""

    def scan(self, prefix: bytes, /) -> Iterator[tuple[bytes, bytes]]:
        """All pairs whose key has the prefix."""


class RocksCommitSession:
    """A commit is one batch of two keys."""

    def __init__(self, store: Store) -> None:
        """Share a database."""
        self._store = store

    def commit(self, client: int, number: int, item: int, body: str) -> None:
        """Write the row's key and the item's new value."""
        row = b"%s%d/%d" % (_DONE, client, number)
        self._store.write({row: b"", _item_key(item): b"%d %s" % (number, body.encode())})

    def fill(self, items: Sequence[tuple[int, int, str]]) -> None:
        """Write all items in one batch."""
        self._store.write({_item_key(item): b"%d %s" % (n, body.encode()) for item, n, body in items})

    def read(self) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int, str]]]:
        """Scan both kinds of keys."""
        done = [_numbers(key, _DONE) for key, _ in self._store.scan(_DONE)]
        items = [
            (_numbers(key, _ITEM)[0], int(number), body.decode())
            for key, value in self._store.scan(_ITEM)
            for number, body in [value.split(b" ", 1)]
        ]
        return [(client, number) for client, number in done], items

    def close(self) -> None:
        """Nothing is open."""


def run_check(store: Store) -> IntegrityCheck:
    """Read every pair of the database; the package has no call for RocksDB's VerifyChecksum."""
    name = "full read with block checksums"
    try:
        for _ in store.scan(b""):
            pass
    except Exception as error:  # the library raises plain ones
        return IntegrityCheck(name=name, problems=[str(error)])
    return IntegrityCheck(name=name)


def _item_key(item: int) -> bytes:
    return b"%s%06d" % (_ITEM, item)


def _numbers(key: bytes, prefix: bytes) -> list[int]:
    return [int(part) for part in key.removeprefix(prefix).split(b"/")]
