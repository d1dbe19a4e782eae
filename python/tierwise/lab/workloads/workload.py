"""Workloads as data (the format: docs/reference/workloads.md), and resolved at one scale for one dialect."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any

from tierwise.lab.workloads.dss.dss_program import build_dss_program
from tierwise.lab.workloads.expression import Term, evaluate_expression
from tierwise.lab.workloads.program import Lap, Program, RoleSql, Stage
from tierwise.lab.workloads.value_generators import Generator, Whole
from tierwise.lab.workloads.workload_reader import (
    find_workload,
    read_schema_statements,
    read_workload_spec,
    workload_names,
)
from tierwise.lab.workloads.workload_spec import MOST_CLIENTS, LapSpec, Step, Table, WorkloadSpec
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, digest_of_files
from tierwise.model.placement import Role

_MOST_ROWS = 10**11
"""Of a table: the loader holds a list of pieces of a million rows."""
OBJECTS = "objects"
"""The dialect of engines that take operations on objects and no SQL."""


class WorkloadResolver:
    """Evaluates the expressions of a workload, and puts its statements into the engine's dialect."""

    def __init__(
        self, spec: WorkloadSpec, file: str, scale: float, constants: Mapping[str, float], dialect: str
    ) -> None:
        """Evaluate the constants.

        Args:
            scale: as the study gives it, above 0.
            constants: values in place of the workload's own.
        """
        if not 0 < scale < float("inf"):
            raise TierwiseError(f"scale {scale} is not above 0", "give a positive scale")
        for name in constants:
            if name not in spec.constants:
                known = ", ".join(spec.constants) or "none"
                raise TierwiseError(f"constants.{name}: {file} has no such constant", f"it has {known}")
        self.spec, self.file, self.dialect = spec, file, dialect
        self.names: dict[str, float] = {"scale": scale}
        for name, expression in spec.constants.items():
            where = f"{file}: constants.{name}"
            self.names[name] = evaluate_expression(constants.get(name, expression), self.names, where)

    def program(self, name: str) -> dict[str, Any]:
        """Load phase and transactions, as the clients read them."""
        return {
            "name": name,
            "think_ms": self.spec.think_ms,
            "tables": [self._table(name, table) for name, table in self.spec.tables.items()],
            "parameters": self._generators("parameters", self.spec.parameters),
            "transactions": [
                {
                    "name": name,
                    "weight": transaction.weight,
                    "autocommit": transaction.autocommit,
                    "steps": [
                        self._step(f"transactions.{name}.steps.{number}", step)
                        for number, step in enumerate(transaction.steps)
                    ],
                }
                for name, transaction in self.spec.transactions.items()
            ],
        }

    def stages(self) -> list[Stage]:
        """The laps, one after the other; none if the transactions are a mix."""
        laps = [self._lap(f"laps.{number}", lap) for number, lap in enumerate(self.spec.laps)]
        return [Stage(streams=[laps])] if laps else []

    def _table(self, name: str, table: Table) -> dict[str, Any]:
        where = f"tables.{name}.rows"
        rows = self._at_least_one(where, round(self._value(where, table.rows)))
        self._at_most(where, rows, _MOST_ROWS)
        columns = self._generators(f"tables.{name}.columns", table.columns)
        return {"name": name, "rows": rows, "columns": columns}

    def _generators(self, where: str, generators: Mapping[str, Generator]) -> list[dict[str, Any]]:
        return [
            {"name": name, "generator": self._generator(f"{where}.{name}", generator, generators)}
            for name, generator in generators.items()
        ]

    def _generator(self, where: str, generator: Generator, siblings: Container[str]) -> dict[str, Any]:
        try:
            fields = generator.resolve(lambda field, value: round(self._value(f"{where}.{field}", value)))
        except ValueError as error:
            raise TierwiseError(f"{self.file}: {where}: {error}", "mend the bounds or the scale") from error
        if "postfix" in fields:
            fields["postfix"] = [self._term(f"{where}.value", term, siblings) for term in fields["postfix"]]
        if fields.get("after") is not None:
            fields["after"] = self.translate(fields["after"], f"{self.file}: {where}.after")
        return fields

    def _term(self, where: str, term: Term, siblings: Container[str]) -> Term:
        """Replace a name by its constant, unless another generator has that name."""
        if isinstance(term, str) or "value" not in term or term["value"] in siblings:
            return term
        return {"number": self._whole(where, term["value"])}

    def _step(self, where: str, step: Step) -> dict[str, Any]:
        repeat = step.repeat
        if repeat not in self.spec.parameters:
            repeat = self._at_least_one(f"{where}.repeat", self._whole(f"{where}.repeat", repeat))
        if self.dialect == OBJECTS and step.operation is not None:
            sql = [step.operation.canonical(self.spec.objects[step.operation.kind])]
        else:
            sql = [self.translate(statement, f"{self.file}: {where}") for statement in step.sql]
        resolved: dict[str, Any] = {"repeat": repeat, "draw": step.draw, "sql": sql}
        return resolved if step.sum is None else {**resolved, "sum": _sum(step.sum)}

    def _lap(self, where: str, lap: LapSpec) -> Lap:
        checksum = None if lap.checksum is None else self._whole(f"{where}.checksum", lap.checksum)
        clients = self._at_least_one(f"{where}.clients", self._whole(f"{where}.clients", lap.clients))
        self._at_most(f"{where}.clients", clients, MOST_CLIENTS)
        return Lap(
            name=lap.name,
            transaction=lap.runs,
            count=self._at_least_one(f"{where}.count", self._whole(f"{where}.count", lap.count)),
            clients=clients,
            before=frozenset(lap.before),
            checksum=checksum,
            timed=lap.timed,
            capped=lap.capped,
        )

    def translate(self, statement: str, where: str) -> str:
        """A statement in the engine's dialect; ``where`` names its place in messages."""
        if self.dialect == OBJECTS:
            raise TierwiseError(
                f"{where} is SQL, which an engine of objects does not take",
                "choose another engine, or write the step as an operation on objects",
            )
        if self.dialect == "postgres":
            return statement
        # sqlglot takes a while to import, and many runs need none of it.
        from tierwise.lab.workloads import sql_translation

        return sql_translation.translate_statement(statement, self.dialect, where)

    def _whole(self, where: str, expression: Whole) -> int:
        value = self._value(where, expression)
        if value != round(value):
            raise TierwiseError(
                f"{self.file}: {where}: {expression!r} is {value}", "choose constants that make it whole"
            )
        return round(value)

    def _at_least_one(self, where: str, value: int) -> int:
        if value < 1:
            raise TierwiseError(f"{self.file}: {where} is {value}", "raise it or the scale")
        return value

    def _at_most(self, where: str, value: int, most: int) -> None:
        if value > most:
            raise TierwiseError(
                f"{self.file}: {where} is {value:,}, above {most:,}", "lower it, its constants or the scale"
            )

    def _value(self, where: str, expression: Whole) -> float:
        return evaluate_expression(expression, self.names, f"{self.file}: {where}")


def _sum(written: str) -> str | dict[str, str]:
    if written == "rows":
        return "rows"
    return {"parameter": written[1:]} if written.startswith(":") else {"column": written}


__all__ = ["Workload", "workload_names"]


@dataclass(frozen=True)
class Workload:
    """A workload that has been read and checked, its statements in PostgreSQL's dialect.

    ``schema`` is executed before the load phase, ``after_load`` after it.
    """

    name: str
    file: str
    folder: Path
    spec: WorkloadSpec
    schema: RoleSql
    after_load: RoleSql

    @property
    def summary(self) -> str:
        """Description of the workload in a sentence."""
        return self.spec.summary

    @property
    def own_digest(self) -> str | None:
        """Of a workload of the user's: it may change under its name."""
        if self.folder.is_relative_to(DATA):
            return None
        return digest_of_files([self.spec.model_dump_json(), self.schema, self.after_load])

    @classmethod
    def load(cls, name_or_path: str) -> Workload:
        """Read a workload by the name of a shipped one, by its folder, or by a pgbench script."""
        name, file, layers = find_workload(name_or_path)
        spec = read_workload_spec(file, layers)
        schema, after_load = read_schema_statements(layers, spec)
        workload = cls(name, file, layers[0].folder, spec, schema, after_load)
        workload.resolve(1)
        return workload

    def resolve(
        self, scale: float, constants: Mapping[str, float] | None = None, dialect: str = "postgres"
    ) -> Program:
        """The workload with every expression evaluated and every statement in an engine's dialect.

        Args:
            scale: above 0; the workload defines which numbers it multiplies.
            constants: values in place of the workload's own constants.
            dialect: ``postgres``, ``mysql``, ``sqlite``, ``duckdb``, or ``objects`` for engines without SQL.
        """
        resolver = WorkloadResolver(self.spec, self.file, scale, constants or {}, dialect)
        schema, after_load = self._schema(dialect)
        if self.spec.program == "dss":
            return build_dss_program(self.folder, resolver.names, schema, after_load, resolver.translate)
        json = dumps(resolver.program(self.name))
        return Program(self.name, json, schema, after_load, resolver.stages())

    def _schema(self, dialect: str) -> tuple[RoleSql, RoleSql]:
        if dialect == OBJECTS:
            return [(Role.DATA, kind.declaration(name)) for name, kind in self.spec.objects.items()], []
        if dialect == "postgres":
            return self.schema, self.after_load
        from tierwise.lab.workloads.sql_translation import translate_schema

        return translate_schema(self.schema, self.after_load, dialect, str(self.folder))
