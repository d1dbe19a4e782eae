"""One reading of an engine's counters, and why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """Counters at one instant.

    Attributes:
        counts: by names that do not depend on the engine's version.
        origin: changes when the counters are reset.
    """

    counts: Mapping[str, int]
    origin: str


class UnreadableError(Exception):
    """A reading failed.

    Args:
        reason: for the recording: without host, user or anything else that the driver says.
        detail: for the terminal: the driver's own words, on one line.
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
