"""Transactions on a store of keys and values: they see what they wrote, and write it all at once."""

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
        """All pairs whose key begins so, sorted, as they are at the first one."""

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Make all changes at once, durably; ``None`` deletes the key."""


class Locks:
    """Which transaction may change a key. Waiting for too long is taken for a deadlock."""

    def __init__(self) -> None:
        """Hold none."""
        self._owners: dict[bytes, Transaction] = {}
        self._freed = threading.Condition()

    def take(self, key: bytes, owner: Transaction) -> None:
        """Wait for a key.

        Raises:
            StatementError: to be tried again, if another transaction does not let go of it.
        """
        with self._freed:
            free = self._freed.wait_for(lambda: self._owners.get(key, owner) is owner, _LOCK_TIMEOUT_S)
            if not free:
                raise StatementError(
                    "waited for a lock for too long: a deadlock, or a long transaction", retry=True
                )
            self._owners[key] = owner

    def release(self, keys: set[bytes]) -> None:
        """Let go of keys."""
        with self._freed:
            for key in keys:
                del self._owners[key]
            self._freed.notify_all()


class Transaction:
    """Changes that are not yet in the store, and locks on what they change. Used by one thread at a time."""

    def __init__(self, store: Store, locks: Locks) -> None:
        """Begin."""
        self._store = store
        self._locks = locks
        self._locked: set[bytes] = set()
        self._changes: dict[bytes, bytes | None] = {}

    def lock(self, key: bytes) -> None:
        """Keep others from changing a key until the end."""
        if key not in self._locked:
            self._locks.take(key, self)
            self._locked.add(key)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key as this transaction left it."""
        return self._changes[key] if key in self._changes else self._store.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._changes[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key."""
        self._changes[key] = None

    def scan(self, prefix: bytes) -> Iterator[Pair]:
        """All pairs whose key begins so, sorted, as this transaction left them."""
        own = sorted(pair for pair in self._changes.items() if pair[0].startswith(prefix))
        stored = self._store.scan(prefix)
        if not own:
            return stored
        kept = (pair for pair in stored if pair[0] not in self._changes)
        return heapq.merge(kept, ((key, value) for key, value in own if value is not None))

    def commit(self) -> None:
        """Write everything, durably; after a failure nothing of it is promised."""
        try:
            if self._changes:
                self._store.write(self._changes)
        finally:
            self.end()

    def end(self) -> None:
        """Forget what was not written."""
        self._changes = {}
        self._locks.release(self._locked)
        self._locked = set()
