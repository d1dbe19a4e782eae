"""One reading of an engine's counters, or the reason why it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """Counters at one instant.

    Attributes:
        counts: by names that are the same for all versions of the engine.
        origin: changes when the counters are reset.
    """

    counts: Mapping[str, int]
    origin: str


class UnreadableError(Exception):
    """A reading failed.

    Args:
        reason: for the recording: without host, user or other driver text.
        detail: for the terminal: the driver's own message, on one line.
    """

    def __init__(self, reason: str, detail: str) -> None:
        """Keep both."""
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


LOST = "the connection failed"
DENIED = "the user of the DSN may not read them"
REFUSED = "the engine refused the query"
MALFORMED = "the DSN is malformed"
