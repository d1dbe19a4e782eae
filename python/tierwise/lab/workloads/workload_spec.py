"""The fields of a workload.toml, and checks for contradictions among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, Field, PositiveFloat

from tierwise import _core
from tierwise.lab.workloads.object_operations import ObjectKind, ObjectOperation
from tierwise.lab.workloads.program import Before
from tierwise.lab.workloads.value_generators import (
    Counter,
    Derived,
    Expression,
    Generator,
    Label,
    Sequence,
    Whole,
)
from tierwise.model.input_files import STRICT, Name

MOST_CLIENTS = 100_000
_RETURNS_NOTHING = re.compile(
    r"\s*(insert|update|delete|replace|merge|copy)\b(?!.*\breturning\b)", re.I | re.S
)
"""A statement that changes rows and returns none: engines find no column in it, and add nothing."""


class _Spec(BaseModel):
    model_config = STRICT


class Table(_Spec):
    """A table to fill: number of rows, and a generator for each column that does not keep its default."""

    rows: Whole
    columns: dict[Name, Generator] = Field(min_length=1)


class Step(_Spec):
    """Statements, or an operation on objects, repeated together.

    ``draw`` names the parameters drawn anew in each repetition. ``sum`` is what the step adds to the
    checksum: a column of each row returned, a parameter (``:name``) once per repetition, or the number of
    ``rows``.
    """

    sql: str | list[str] = []
    file: str | None = Field(default=None, max_length=200)
    operation: ObjectOperation | None = Field(default=None, alias="object")
    repeat: Whole = 1
    draw: list[str] = []
    sum: str | None = Field(default=None, pattern=r"^:?[A-Za-z_][A-Za-z0-9_]*$")


class Transaction(_Spec):
    """One kind of transaction; ``weight`` is its share of the mix relative to the others."""

    weight: PositiveFloat = 1.0
    autocommit: bool = False
    steps: list[Step] = Field(min_length=1)


class LapSpec(_Spec):
    """A transaction run ``count`` times in all by ``clients`` clients, after the laps above it."""

    name: Name
    transaction: str | None = None
    count: Whole = 1
    clients: Whole = 1
    before: list[Before] = []
    checksum: Whole | None = None
    timed: bool = True
    capped: bool = True

    @property
    def runs(self) -> str:
        """Name of the transaction."""
        return self.transaction or self.name


class WorkloadSpec(_Spec):
    """The content of workload.toml, together with that of the workload it is ``like``.

    ``program`` names code that generates work from the constants where transactions cannot express it.
    """

    summary: str
    like: str | None = None
    clients: int = Field(default=1, ge=1, le=MOST_CLIENTS)
    think_ms: float = Field(default=0.0, ge=0, le=1e9)
    constants: dict[Name, Whole | float] = {}
    objects: dict[Name, ObjectKind] = {}
    tables: dict[Name, Table] = {}
    parameters: dict[Name, Generator] = {}
    transactions: dict[str, Transaction] = {}
    laps: list[LapSpec] = []
    program: Literal["dss"] | None = None
    pgbench: list[str] = []

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Contradictions, each with its fix; steps already hold single statements."""
        if "scale" in self.constants:
            yield "constants.scale", "choose another name; a study gives the scale"
        if bool(self.transactions) == bool(self.program):
            yield "transactions: give these or a program", "write [transactions.NAME]"
        for kind_name, kind in self.objects.items():
            if problem := kind.problem():
                yield f"objects.{kind_name} {problem[0]}", problem[1]
        for name, transaction in self.transactions.items():
            if name == "all":
                yield "transactions.all", "choose another name; results use this one for all transactions"
            for number, step in enumerate(transaction.steps):
                yield from _step_contradictions(self, step, f"transactions.{name}.steps.{number}")
        yield from self._parameter_contradictions()
        for name, table in self.tables.items():
            where = f"tables.{name}.columns"
            for column, generator in table.columns.items():
                if isinstance(generator, Sequence):
                    yield f"{where}.{column}: a sequence", "use a counter for the number of the row"
            yield from _derivation_contradictions(where, table.columns, {*self.constants, "scale"})
        yield from self._lap_contradictions()

    def _parameter_contradictions(self) -> Iterator[tuple[str, str]]:
        steps = [step for transaction in self.transactions.values() for step in transaction.steps]
        used = {name for step in steps for name in (str(step.repeat), *bound_parameters(step))}
        used |= {step.sum.removeprefix(":") for step in steps if step.sum}
        used |= _behind(used, self.parameters)
        for name in self.parameters:
            if name not in used:
                yield f"parameters.{name} is used by no statement", "use it as :" + name + ", or remove it"
        yield from _derivation_contradictions("parameters", self.parameters, {*self.constants, "scale"})

    def _lap_contradictions(self) -> Iterator[tuple[str, str]]:
        seen: set[str] = set()
        for number, lap in enumerate(self.laps):
            where = f"laps.{number} ({lap.name})"
            if lap.name in seen:
                yield f"{where}: the name is taken", "give each lap a name of its own"
            if lap.runs not in self.transactions:
                yield (
                    f"{where} runs the unknown transaction {lap.runs!r}",
                    "use one of " + ", ".join(self.transactions),
                )
            elif lap.checksum is not None and not any(step.sum for step in self.transactions[lap.runs].steps):
                yield f"{where}: checksum, but no step of {lap.runs} has a sum", "give one of them a sum"
            seen.add(lap.name)
        for name in self.transactions:
            if self.laps and name not in {lap.runs for lap in self.laps}:
                yield f"transactions.{name} is run by no lap", "add a lap that runs it, or remove it"


def _derivation_contradictions(
    where: str, generators: dict[str, Generator], constants: set[str]
) -> Iterator[tuple[str, str]]:
    """Generators with unknown sources, with unsuitable sources, or with themselves as a source."""
    for name, generator in generators.items():
        if not isinstance(generator, Derived):
            continue
        own = constants if isinstance(generator, Expression) else set()
        for of in sorted(generator.sources() - own):
            if of not in generators:
                known = ", ".join(other for other in generators if other != name)
                yield f"{where}.{name} is made of the unknown {of!r}", f"use one of {known or 'none'}"
                return
            if not generators[of].whole and not isinstance(generator, Label):
                yield f"{where}.{name} is made of {of}, which is no whole number", "use another"
        if name in _behind({name}, generators):
            yield f"{where}.{name} is made of itself", "break the circle"


def _behind(names: set[str], generators: dict[str, Generator]) -> set[str]:
    """Direct and indirect sources of the values of these names."""
    sources: set[str] = set()
    while names:
        made = [value for name in names if isinstance(value := generators.get(name), Derived)]
        names = {of for generator in made for of in generator.sources()} - sources
        sources |= names
    return sources


def _step_contradictions(spec: WorkloadSpec, step: Step, where: str) -> Iterator[tuple[str, str]]:
    known = ", ".join(spec.parameters) or "none"
    here = bound_parameters(step)
    for name in sorted(here - spec.parameters.keys()):
        yield (
            f"{where}.sql uses the unknown parameter :{name}",
            f"declare it under [parameters] (there: {known})",
        )
    summed = step.sum.removeprefix(":") if step.sum and step.sum.startswith(":") else None
    if summed is not None and summed not in spec.parameters:
        yield f"{where}.sum names the unknown parameter {summed!r}", f"use one of {known}"
    is_column = step.sum not in (None, "rows") and summed is None
    if is_column and step.sql and all(_RETURNS_NOTHING.match(sql) for sql in step.sql):
        yield (
            f"{where}.sum names the column {step.sum!r}, and no statement of the step returns rows",
            'name it in a RETURNING clause, or give "rows" or a parameter',
        )
    for name in sorted(set(step.draw) - here - _behind(here, spec.parameters) - {summed}):
        yield (
            f"{where}.draw names {name!r}, which no statement of the step uses",
            "use it there, or remove it",
        )
    if isinstance(step.repeat, int):
        if step.repeat < 1:
            yield f"{where}.repeat is {step.repeat}", "repeat at least once, or remove the step"
        return
    generator = spec.parameters.get(step.repeat)
    if generator is not None and (not generator.whole or isinstance(generator, Counter)):
        yield (
            f"{where}.repeat: {step.repeat} draws no number of repetitions",
            "use for example a uniform generator",
        )


def bound_parameters(step: Step) -> set[str]:
    """Names of the parameters in a step's statements."""
    return {name for sql in step.sql for name in _core.statement_parameters(sql)}
