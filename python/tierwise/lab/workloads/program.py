"""A workload resolved at one scale for one dialect: schema, load phase, transactions and laps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tierwise.model.placement import Role

RoleSql = list[tuple[Role, str]]
"""Single statements, each with the role of what it creates."""

Before = Literal["cold", "reconnect", "checkpoint"]
"""Preparation of a lap, outside its time: server restarted and page cache dropped, new sessions, or all dirty
pages written."""


@dataclass(frozen=True)
class Lap:
    """A transaction run ``count`` times in all by ``clients`` clients, or a part of the load, timed."""

    name: str
    transaction: str | None = None
    """Of the program; ``None`` if the lap loads a table or executes a statement of the schema."""
    load: str | None = None
    """The table that the lap fills, which the load phase then leaves out."""
    statement: tuple[Role, str] | None = None
    """The statement of the schema that the lap executes."""
    count: int = 1
    clients: int = 1
    before: frozenset[Before] = frozenset()
    checksum: int | None = None
    """Expected total of the steps' sums."""
    timed: bool = True
    """Part of the run's elapsed time."""
    capped: bool = True
    """Stopped at the study's cap, if it has one."""


@dataclass(frozen=True)
class Stage:
    """Streams that run side by side; the laps of one stream run one after the other.

    A lap of one of several streams has nothing before it (``Lap.before``), which would disturb the others.
    """

    streams: list[list[Lap]]


@dataclass(frozen=True)
class Program:
    """The work of a run, with every expression evaluated and every statement in the engine's dialect.

    ``schema`` is executed before the load phase, ``after_load`` after it.
    """

    name: str
    json: str
    """Tables, parameters and transactions, as the clients read them."""
    schema: RoleSql
    after_load: RoleSql
    stages: list[Stage] = field(default_factory=list)
    """Empty for a mix of transactions, which runs for a number of them or for a time."""
    score: Mapping[str, float] = field(default_factory=dict)
    """Inputs of the workload's metrics, such as its scale factor; empty if it defines none."""

    @property
    def laps(self) -> list[Lap]:
        """The laps of all streams, stage by stage."""
        return [lap for stage in self.stages for stream in stage.streams for lap in stream]
