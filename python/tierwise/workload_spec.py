"""What a workload.toml may say, and which parts of it contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from tierwise import _core
from tierwise.generators import Counter, Generator, Sequence, Whole

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Spec(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True, strict=True)


class Table(_Spec):
    """A table to fill: so many rows, and a generator for each column that does not keep its default."""

    rows: Whole
    columns: dict[Name, Generator] = Field(min_length=1)


class Step(_Spec):
    """Statements, repeated together. ``draw`` names the parameters drawn anew in each repetition."""

    sql: str | list[str] = []
    file: str | None = None
    repeat: int | str = 1
    draw: list[str] = []


class Transaction(_Spec):
    """One kind of transaction; ``weight`` is its share of the mix relative to the others."""

    weight: PositiveFloat = 1.0
    autocommit: bool = False
    steps: list[Step] = Field(min_length=1)


class WorkloadSpec(_Spec):
    """What workload.toml holds."""

    summary: str
    clients: PositiveInt = 1
    think_ms: NonNegativeFloat = 0.0
    constants: dict[Name, Whole | float] = {}
    tables: dict[Name, Table] = {}
    parameters: dict[Name, Generator] = {}
    transactions: dict[str, Transaction] = Field(min_length=1)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """What does not fit together, each with its fix; steps hold single statements by now."""
        if "scale" in self.constants:
            yield "constants.scale", "choose another name; a study gives the scale"
        used: set[str] = set()
        for name, transaction in self.transactions.items():
            if name == "all":
                yield "transactions.all", "choose another name; results use this one for all transactions"
            for number, step in enumerate(transaction.steps):
                where = f"transactions.{name}.steps.{number}"
                yield from _step_contradictions(self, step, where)
                used |= {str(step.repeat), *_bound(step)}
        for name in self.parameters:
            if name not in used:
                yield f"parameters.{name} is used by no statement", "use it as :" + name + ", or remove it"
        for name, table in self.tables.items():
            for column, generator in table.columns.items():
                if isinstance(generator, Sequence):
                    where = f"tables.{name}.columns.{column}"
                    yield f"{where}: a sequence", "use a counter for the number of the row"


def _step_contradictions(spec: WorkloadSpec, step: Step, where: str) -> Iterator[tuple[str, str]]:
    known = ", ".join(spec.parameters) or "none"
    bound = _bound(step)
    for name in sorted(bound - spec.parameters.keys()):
        yield (
            f"{where}.sql uses the unknown parameter :{name}",
            f"declare it under [parameters] (there: {known})",
        )
    for name in sorted(set(step.draw) - bound):
        yield (
            f"{where}.draw names {name!r}, which no statement of the step uses",
            "use it there, or remove it",
        )
    if isinstance(step.repeat, int):
        if step.repeat < 1:
            yield f"{where}.repeat is {step.repeat}", "repeat at least once, or remove the step"
    elif step.repeat not in spec.parameters:
        yield (
            f"{where}.repeat names the unknown parameter {step.repeat!r}",
            f"use a whole number or one of {known}",
        )
    else:
        generator = spec.parameters[step.repeat]
        if not generator.whole or isinstance(generator, Counter):
            yield (
                f"{where}.repeat: {step.repeat} draws no number of repetitions",
                "use for example a uniform generator",
            )


def _bound(step: Step) -> set[str]:
    return {name for sql in step.sql for name in _core.statement_parameters(sql)}
