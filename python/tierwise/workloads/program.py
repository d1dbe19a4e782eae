"""A workload resolved at one scale for one dialect: what is made, loaded and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tierwise.model.roles import Role

RoleSql = list[tuple[Role, str]]
"""Single statements, each with the role of what it creates."""

Before = Literal["cold", "reconnect", "checkpoint"]
"""What is done before a lap, outside its time: server restarted and page cache dropped, new sessions, or all
that is dirty written."""


@dataclass(frozen=True)
class Lap:
    """A transaction run ``count`` times in all by ``clients`` clients, or a part of the load, timed."""

    name: str
    transaction: str | None = None
    """Of the program; ``None`` if the lap loads or makes something."""
    load: str | None = None
    """The table that the lap fills, which the load phase then leaves out."""
    statement: tuple[Role, str] | None = None
    """The statement of the schema that the lap executes."""
    count: int = 1
    clients: int = 1
    before: frozenset[Before] = frozenset()
    checksum: int | None = None
    """What the steps' sums must come to."""
    timed: bool = True
    """Part of the run's elapsed time."""
    capped: bool = True
    """Stopped at the study's cap, if it has one."""


@dataclass(frozen=True)
class Stage:
    """Streams that run side by side; the laps of one stream run one after the other."""

    streams: list[list[Lap]]


@dataclass(frozen=True)
class Program:
    """What a run does, with every expression evaluated and every statement in the engine's dialect.

    ``schema`` is executed before the load phase, ``after_load`` behind it.
    """

    name: str
    json: str
    """Tables, parameters and transactions, as the clients read them."""
    schema: RoleSql
    after_load: RoleSql
    stages: list[Stage] = field(default_factory=list)
    """Empty for a mix of transactions, which runs for a number of them or for a time."""
    score: Mapping[str, float] = field(default_factory=dict)
    """What the workload's metrics need to know, such as its scale factor; empty if it defines none."""
