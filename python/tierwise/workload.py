"""Workloads: schema, load phase and transactions, as data (the format: docs/workloads.md)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from json import dumps
from pathlib import Path

from tierwise.dss import program as dss
from tierwise.errors import TierwiseError
from tierwise.program import Program, RoleSql
from tierwise.roles import Role
from tierwise.workload_reader import WORKLOAD_FILE, read_schema, read_spec, read_toml
from tierwise.workload_resolver import OBJECTS, Resolver
from tierwise.workload_spec import WorkloadSpec


@dataclass(frozen=True)
class Workload:
    """A workload that has been read and checked, its statements in PostgreSQL's dialect.

    ``schema`` is executed before the load phase, ``after_load`` behind it.
    """

    name: str
    file: str
    spec: WorkloadSpec
    schema: RoleSql
    after_load: RoleSql

    @property
    def summary(self) -> str:
        """What the workload is, in a sentence."""
        return self.spec.summary

    @property
    def clients(self) -> int:
        """Number of clients unless a study says otherwise."""
        return self.spec.clients

    @classmethod
    def load(cls, name_or_folder: str) -> Workload:
        """Read a workload by the name of a shipped one, or by its folder.

        Raises:
            TierwiseError: naming the file and field, if there is no such workload or it is not valid.
        """
        folders = _layers(_find(name_or_folder))
        spec = read_spec(folders)
        schema, after_load = read_schema(folders, spec)
        file = str(folders[0] / WORKLOAD_FILE)
        workload = cls(folders[0].resolve().name, file, spec, schema, after_load)
        workload.resolve(1)
        return workload

    def resolve(
        self, scale: float, constants: Mapping[str, float] | None = None, dialect: str = "postgres"
    ) -> Program:
        """The workload with every expression evaluated and every statement in an engine's dialect.

        Args:
            scale: above 0; what it multiplies is the workload's to say.
            constants: values in place of the workload's own constants.
            dialect: ``postgres``, ``mysql``, ``sqlite``, ``duckdb``, or ``objects`` for engines without SQL.

        Raises:
            TierwiseError: naming the field whose value makes no sense at this scale, or the statement that
                the dialect cannot say.
        """
        resolver = Resolver(self.spec, self.file, scale, constants or {}, dialect)
        schema, after_load = self._schema(dialect)
        if self.spec.program == "dss":
            folder = Path(self.file).parent
            return dss.build(folder, resolver.names, schema, after_load, resolver.translate)
        json = dumps(resolver.program(self.name))
        return Program(self.name, json, schema, after_load, resolver.stages())

    def to_json(self, scale: float) -> str:
        """Load phase and transactions of :meth:`resolve`, as the clients in Rust read them."""
        return self.resolve(scale).json

    def _schema(self, dialect: str) -> tuple[RoleSql, RoleSql]:
        if dialect == OBJECTS:
            return [(Role.DATA, kind.declaration(name)) for name, kind in self.spec.objects.items()], []
        if dialect == "postgres":
            return self.schema, self.after_load
        from tierwise import dialect as dialects  # sqlglot takes a while to import.

        return dialects.translate_schema(self.schema, self.after_load, dialect, str(Path(self.file).parent))


def names() -> list[str]:
    """Workloads that ship with tierwise."""
    return sorted(folder.name for folder in _shipped().iterdir() if (folder / WORKLOAD_FILE).is_file())


def _layers(folder: Path) -> list[Path]:
    """The folder and those of the workloads that it is like, one like the other."""
    folders = [folder]
    while isinstance(like := read_toml(folders[-1]).get("like"), str):
        known = names()
        if like not in known or _shipped() / like in folders:
            where = folders[-1] / WORKLOAD_FILE
            raise TierwiseError(f"{where}: like: {like!r}", f"use another one of {', '.join(known)}")
        folders.append(_shipped() / like)
    return folders


def _find(name_or_folder: str) -> Path:
    known = names()
    if name_or_folder in known:
        return _shipped() / name_or_folder
    folder = Path(name_or_folder)
    if folder.is_dir():
        return folder
    near = difflib.get_close_matches(name_or_folder, known) or known
    raise TierwiseError(
        f"unknown workload {name_or_folder!r}",
        f"use one of {', '.join(near)}, or a folder with a {WORKLOAD_FILE}",
    )


def _shipped() -> Path:
    return Path(str(resources.files("tierwise"))) / "workloads"
