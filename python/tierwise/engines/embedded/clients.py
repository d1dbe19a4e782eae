"""A set of clients in the worker of an embedded engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tierwise.engines.embedded.link import WorkerLink


class EmbeddedClients:
    """Implements :class:`tierwise.engines.base.Clients`; after a restart of the worker it must reconnect."""

    def __init__(
        self, present_link: Callable[[], WorkerLink], program_json: str, clients: int, seed: int
    ) -> None:
        """Connect ``clients`` clients.

        Args:
            present_link: gives the link to the current worker.
        """
        self._present_link = present_link
        self._told: dict[str, Any] = {"program": program_json, "clients": clients, "seed": seed}
        self._closed = False
        self._connect()

    @property
    def sessions(self) -> int:
        """Number of open sessions."""
        return 0 if self._closed or not self._link.open else int(self._told["clients"])

    def run(
        self,
        transactions: int | None = None,
        seconds: float | None = None,
        *,
        transaction: str | None = None,
        cap_s: float | None = None,
    ) -> str:
        """Run, and give the report; its ``client_cpu_s`` is zero because the engine counts that time."""
        told = self._link.call(
            "run",
            number=self._number,
            limits=[transactions, seconds],
            options={"transaction": transaction, "cap_s": cap_s},
        )
        return json.dumps({**json.loads(told), "client_cpu_s": 0.0})

    def reconnect(self) -> None:
        """Close every session and open new ones in the current worker."""
        if self._link.open:
            self._link.call("reconnect", number=self._number)
        else:
            self._connect()

    def close(self) -> None:
        """End the sessions. No error if the worker, and the sessions with it, is gone."""
        if self._link.open and not self._closed:
            self._link.call("disconnect", number=self._number)
        self._closed = True

    def _connect(self) -> None:
        self._link = self._present_link()
        self._number = self._link.call("connect", **self._told)
