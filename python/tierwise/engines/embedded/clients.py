"""A set of clients that lives in the worker of an embedded engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tierwise.engines.embedded.link import WorkerLink


class EmbeddedClients:
    """As :class:`tierwise.engines.base.Clients`; after a restart of the worker it must reconnect."""

    def __init__(
        self, present_link: Callable[[], WorkerLink], program_json: str, clients: int, seed: int
    ) -> None:
        """Connect so many clients.

        Args:
            present_link: gives the link to the worker that runs at the time.
        """
        self._present_link = present_link
        self._told: dict[str, Any] = {"program": program_json, "clients": clients, "seed": seed}
        self._closed = False
        self._connect()

    @property
    def sessions(self) -> int:
        """How many are open."""
        return 0 if self._closed or not self._link.open else int(self._told["clients"])

    def run(
        self,
        transactions: int | None = None,
        seconds: float | None = None,
        *,
        transaction: str | None = None,
        cap_s: float | None = None,
    ) -> str:
        """Run, and give the report; its ``client_cpu_s`` is zero, for that time is the engine's."""
        told = self._link.call(
            "run",
            number=self._number,
            limits=[transactions, seconds],
            options={"transaction": transaction, "cap_s": cap_s},
        )
        return json.dumps({**json.loads(told), "client_cpu_s": 0.0})

    def reconnect(self) -> None:
        """Close every session and open new ones, in the worker that runs now."""
        if self._link.open:
            self._link.call("reconnect", number=self._number)
        else:
            self._connect()

    def close(self) -> None:
        """End the sessions. No error if the worker is gone, and they with it."""
        if self._link.open and not self._closed:
            self._link.call("disconnect", number=self._number)
        self._closed = True

    def _connect(self) -> None:
        self._link = self._present_link()
        self._number = self._link.call("connect", **self._told)
