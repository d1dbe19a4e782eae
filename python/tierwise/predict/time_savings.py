"""The most that a faster device for each role could save: on the critical path, not as a sum of waits.

Waits overlap and move: without its device's time a commit waits less, but then waits for the next resource.
So each role is put on a device that takes no time, and the recorded work is replayed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.placement import EVERYTHING, Role
from tierwise.predict import Estimate, Predictor, Scenario
from tierwise.predict.simulator_output import Demands
from tierwise.recording.relations import Relations
from tierwise.results.measurements import StrictModel

NO_TIME = "zero"
"""The profile whose requests take no time."""


class TimeSaving(StrictModel):
    """The most that one role, or ``all`` of them, can save."""

    role: Role | str
    speedup: Estimate | None
    """Rate of the work without that time, over the rate as recorded and reproduced."""
    refused: str | None

    @property
    def share(self) -> float | None:
        """Share of the time of a unit of work that would be saved; never below 0."""
        return None if self.speedup is None else max(0.0, 1.0 - 1.0 / self.speedup.value)


class TimeSavings(StrictModel):
    """Possible savings, greatest first, and ``all`` at the end; or the reason why they are unknown."""

    rows: list[TimeSaving] = []
    refused: str | None = None
    warnings: list[str] = []
    unit: str = "transactions"
    """What the demands are of: ``transactions`` or ``requests``."""
    demands: Demands | None = None
    """What one of them asks and waits for, in the mean, as it is replayed; ``None`` if that is not known."""


def time_savings_by_role(predictor: Predictor, roles: Sequence[Role]) -> TimeSavings:
    """Replay a recording with each of ``roles``, and then all, on a device that takes no time."""
    names = [*(role.value for role in roles), EVERYTHING]
    answers = predictor.predict([Scenario(placement={name: NO_TIME}) for name in names])
    rows = [
        TimeSaving(
            role=name,
            speedup=answer.speedup,
            refused=answer.refused.message if answer.refused else None,
        )
        for name, answer in zip(names, answers, strict=True)
    ]
    rows = [*sorted(rows[:-1], key=lambda row: row.share or 0.0, reverse=True), rows[-1]]
    warnings = [warning for answer in answers for warning in answer.warnings]
    return TimeSavings(
        rows=rows,
        warnings=list(dict.fromkeys(warnings)),
        unit=predictor.run.unit,
        demands=predictor.demands if predictor.work.turns else None,
    )


MOST_RELATIONS = 12
"""Tables and indexes whose savings are replayed: each is a recording of its own to the simulator."""


def time_savings_by_relation(predictor: Predictor, relations: Relations) -> dict[str, TimeSaving]:
    """Replay a recording with each of the most used tables and indexes on a device that takes no time.

    Returns:
        Name of the relation -> the most that it can save.
    """
    used = relations.used[:MOST_RELATIONS]
    scenarios = [Scenario(placement={row.relation.pattern: NO_TIME}) for row in used]
    return {
        row.relation.label: TimeSaving(
            role=row.relation.label,
            speedup=answer.speedup,
            refused=answer.refused.message if answer.refused else None,
        )
        for row, answer in zip(used, predictor.predict(scenarios), strict=False)
    }
