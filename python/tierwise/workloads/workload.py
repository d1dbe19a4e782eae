"""Workloads: schema, load phase and transactions, as data (the format: docs/reference/workloads.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path

from tierwise.model.placement import Role
from tierwise.workloads.dss import program as dss
from tierwise.workloads.program import Program, RoleSql
from tierwise.workloads.reader import read_schema, read_spec
from tierwise.workloads.resolver import OBJECTS, Resolver
from tierwise.workloads.sources import find, names
from tierwise.workloads.spec import WorkloadSpec

__all__ = ["Workload", "names"]


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
    def clients(self) -> int:
        """Number of clients unless a study says otherwise."""
        return self.spec.clients

    @classmethod
    def load(cls, name_or_path: str) -> Workload:
        """Read a workload by the name of a shipped one, by its folder, or by a pgbench script.

        Raises:
            TierwiseError: naming the file and field, if there is no such workload or it is not valid.
        """
        name, file, layers = find(name_or_path)
        spec = read_spec(file, layers)
        schema, after_load = read_schema(layers, spec)
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

        Raises:
            TierwiseError: naming the field whose value is invalid at this scale, or the statement that the
                dialect cannot express.
        """
        resolver = Resolver(self.spec, self.file, scale, constants or {}, dialect)
        schema, after_load = self._schema(dialect)
        if self.spec.program == "dss":
            return dss.build(self.folder, resolver.names, schema, after_load, resolver.translate)
        json = dumps(resolver.program(self.name))
        return Program(self.name, json, schema, after_load, resolver.stages())

    def _schema(self, dialect: str) -> tuple[RoleSql, RoleSql]:
        if dialect == OBJECTS:
            return [(Role.DATA, kind.declaration(name)) for name, kind in self.spec.objects.items()], []
        if dialect == "postgres":
            return self.schema, self.after_load
        from tierwise.workloads import dialect as dialects  # sqlglot takes a while to import.

        return dialects.translate_schema(self.schema, self.after_load, dialect, str(self.folder))
