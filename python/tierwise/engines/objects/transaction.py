"""Transactions on a key-value store: they see their own writes and write all changes at once."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Mapping
from typing import Protocol

from tierwise.model.errors import StatementError

Pair = tuple[bytes, bytes]

_LOCK_TIMEOUT_S = 1.0


class Store(Protocol):
    """A sorted map from bytes to bytes, shared by all sessions."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or ``None``."""

    def scan(self, prefix: bytes) -> Iterator[Pair]:
        """All pairs whose key has the prefix, sorted, as of the first one."""

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Make all changes at once, durably; ``None`` deletes the key."""


class Locks:
    """Locks on keys, held by transactions. A lock timeout counts as a deadlock."""

    def __init__(self) -> None:
        """Start without locks."""
        self._owners: dict[bytes, Transaction] = {}
        self._freed = threading.Condition()

    def take(self, key: bytes, owner: Transaction) -> None:
        """Lock a key, waiting for it if necessary.

        Raises:
            StatementError: retryable, if another transaction does not release the key in time.
        """
        with self._freed:
            free = self._freed.wait_for(lambda: self._owners.get(key, owner) is owner, _LOCK_TIMEOUT_S)
            if not free:
                raise StatementError(
                    "waited for a lock for too long: a deadlock, or a long transaction", retry=True
                )
            self._owners[key] = owner

    def release(self, keys: set[bytes]) -> None:
        """Release keys."""
        with self._freed:
            for key in keys:
                del self._owners[key]
            self._freed.notify_all()


class Transaction:
    """Uncommitted changes, with locks on the changed keys. Used by one thread at a time."""

    def __init__(self, store: Store, locks: Locks) -> None:
        """Begin."""
        self._store = store
        self._locks = locks
        self._locked: set[bytes] = set()
        self._changes: dict[bytes, bytes | None] = {}

    def lock(self, key: bytes) -> None:
        """Keep others from changing a key until the transaction ends."""
        if key not in self._locked:
            self._locks.take(key, self)
            self._locked.add(key)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, as changed by this transaction."""
        return self._changes[key] if key in self._changes else self._store.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._changes[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key."""
        self._changes[key] = None

    def scan(self, prefix: bytes) -> Iterator[Pair]:
        """All pairs whose key has the prefix, sorted, as changed by this transaction."""
        own = sorted(pair for pair in self._changes.items() if pair[0].startswith(prefix))
        stored = self._store.scan(prefix)
        if not own:
            return stored
        kept = (pair for pair in stored if pair[0] not in self._changes)
        return heapq.merge(kept, ((key, value) for key, value in own if value is not None))

    def commit(self) -> None:
        """Write all changes, durably; after a failure, none of them is guaranteed."""
        try:
            if self._changes:
                self._store.write(self._changes)
        finally:
            self.end()

    def end(self) -> None:
        """Discard changes that were not written."""
        self._changes = {}
        self._locks.release(self._locked)
        self._locked = set()
