"""The books of a load of commits: what clients were told, against what a database holds after a cut. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tierwise.engines.commits import ITEMS, Found, item_of

Commit = tuple[int, int]
"""Client and number."""


@dataclass(frozen=True)
class Load:
    """The commits of one load up to a power cut."""

    first: int
    """The number that every client began with."""
    begun: Sequence[int]
    """Commits begun, by client."""
    acknowledged_ns: Sequence[Sequence[int]]
    """Times of the acknowledgements in their order, by client."""
    cut_ns: int
    """When the power went; what was acknowledged later was acknowledged by nobody."""

    @property
    def started_ns(self) -> int:
        """When the first commit was acknowledged."""
        return min(times[0] for times in self.acknowledged_ns if times)

    @property
    def seconds(self) -> float:
        """From then to the cut."""
        return (self.cut_ns - self.started_ns) / 1e9

    @property
    def counted(self) -> int:
        """Commits acknowledged in that time, after the one that starts it."""
        return sum(self.started_ns < at < self.cut_ns for times in self.acknowledged_ns for at in times)

    def acknowledged(self) -> dict[Commit, int]:
        """Time of every acknowledgement before the cut."""
        return {
            (client, self.first + index): at
            for client, times in enumerate(self.acknowledged_ns)
            for index, at in enumerate(times)
            if at < self.cut_ns
        }

    def may_be_there(self, commit: Commit) -> bool:
        """Whether a client began this commit."""
        client, number = commit
        return client < len(self.begun) and self.first <= number < self.first + self.begun[client]


@dataclass(frozen=True)
class Loss:
    """Acknowledged commits that are gone."""

    commits: int = 0
    oldest_ms: float | None = None
    """Age at the cut."""
    whole_load: bool = False
    """Whether the first commit of the load is among them, so that a longer load would have lost more."""


@dataclass
class Books:
    """What the database must hold: the commits found after the last cut, and those acknowledged since."""

    clients: int
    kept: set[Commit] = field(default_factory=set)

    def settle(self, load: Load, found: Found) -> tuple[Loss, str | None]:
        """Compare after a cut, and keep what was found.

        Returns:
            The loss, and what cannot have come from whole transactions, if anything.
        """
        present = {(client, number) for client, number in found.done}
        acknowledged = load.acknowledged()
        lost = (self.kept | acknowledged.keys()) - present
        damage = self._damage(load, found, present)
        self.kept = present
        if not lost:
            return Loss(), damage
        oldest_ns = min(acknowledged.get(commit, load.started_ns) for commit in lost)
        return Loss(len(lost), (load.cut_ns - oldest_ns) / 1e6, oldest_ns <= load.started_ns), damage

    def _damage(self, load: Load, found: Found, present: Collection[Commit]) -> str | None:
        if len(present) != len(found.done):
            return "a row is there twice"
        strange = [one for one in present if one not in self.kept and not load.may_be_there(one)]
        if strange:
            return f"{len(strange)} rows are there that nobody inserted"
        if sorted(item for item, _, _ in found.items) != list(range(self.clients * ITEMS)):
            return f"{len(found.items)} items are there instead of {self.clients * ITEMS}"
        last: dict[int, int] = {}
        for client, number in present:
            item = item_of(client, number)
            last[item] = max(last.get(item, -1), number)
        torn = [item for item, number, whole in found.items if not whole or number != last.get(item, -1)]
        return f"{len(torn)} items do not hold their last commit: half a transaction" if torn else None
