"""Programs that hold the sessions of a recorded server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from tierwise import _core

_FIRST_S, _MOST_S = 0.2, 30.0
"""Time between two looks: twice the one before, since each reads every descriptor of the host."""


class SessionClients:
    """What was seen of them so far."""

    def __init__(self, processes: Callable[[], list[int]]) -> None:
        """Nothing yet; ``processes`` gives the server's current ones."""
        self._processes = processes
        self._seen = "[]"
        self._due_s, self._each_s = 0.0, _FIRST_S

    def look_if_due(self) -> None:
        """Look, unless the last look was not long ago."""
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._seen = _core.clients_seen(self._seen, self._processes())
            self._due_s, self._each_s = now_s + self._each_s, min(2 * self._each_s, _MOST_S)

    @property
    def described(self) -> list[dict[str, Any]]:
        """As ``about.json`` has them."""
        seen: list[dict[str, Any]] = json.loads(self._seen)
        return seen
