"""What the removal of each role's files from their devices would save at most: the critical path, not waits.

Waits overlap and move: without its device's time a commit waits less, but then the next thing is waited for.
So each role is put on a device that takes no time, and the recorded work is replayed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.roles import Role
from tierwise.predict import Estimate, Predictor, Scenario
from tierwise.results.measurements import Record

NO_TIME = "zero"
"""The profile whose requests take no time."""
EVERYTHING = "all"


class Saving(Record):
    """What one role, or ``all`` of them, costs at most."""

    role: Role | str
    speedup: Estimate | None
    """Rate of the work without that time, over the rate as recorded and reproduced."""
    refused: str | None

    @property
    def share(self) -> float | None:
        """Share of the time of a unit of work that would be saved; never below 0."""
        return None if self.speedup is None else max(0.0, 1.0 - 1.0 / self.speedup.value)


class Savings(Record):
    """What can be saved, greatest first, and ``all`` at the end; or why that cannot be said."""

    rows: list[Saving] = []  # noqa: RUF012  (pydantic copies defaults)
    refused: str | None = None
    warnings: list[str] = []  # noqa: RUF012


def savings(predictor: Predictor, roles: Sequence[Role]) -> Savings:
    """Replay a recording with each of ``roles``, and then all, on a device that takes no time."""
    names = [*(role.value for role in roles), EVERYTHING]
    answers = predictor.predict([Scenario(placement={name: NO_TIME}) for name in names])
    rows = [
        Saving(
            role=name,
            speedup=answer.speedup,
            refused=answer.refused.message if answer.refused else None,
        )
        for name, answer in zip(names, answers, strict=True)
    ]
    rows = [*sorted(rows[:-1], key=lambda row: row.share or 0.0, reverse=True), rows[-1]]
    warnings = [warning for answer in answers for warning in answer.warnings]
    return Savings(rows=rows, warnings=list(dict.fromkeys(warnings)))
