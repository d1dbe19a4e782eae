"""Workloads: schema, load phase and transactions, as data (the format: docs/workloads.md)."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tierwise import _core
from tierwise.errors import TierwiseError
from tierwise.expression import evaluate
from tierwise.generators import Generator, Whole
from tierwise.roles import Role
from tierwise.workload_spec import Table, WorkloadSpec

WORKLOAD_FILE = "workload.toml"
SCHEMA_FILE = "schema.sql"
AFTER_LOAD_FILE = "after_load.sql"

RoleSql = list[tuple[Role, str]]
"""Single statements, each with the role of what it creates."""

_ROLE_MARKER = re.compile(r"^--\s*role:\s*(\S+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Workload:
    """A workload that has been read and checked.

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
        folder = _find(name_or_folder)
        file = str(folder / WORKLOAD_FILE)
        try:
            spec = WorkloadSpec.model_validate(tomllib.loads(_read(folder / WORKLOAD_FILE)))
        except tomllib.TOMLDecodeError as error:
            raise TierwiseError(f"{file}: {error}", "mend the TOML") from error
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise TierwiseError(
                f"{file}: {field}: {first['msg']}", "mend that field; see docs/workloads.md"
            ) from error
        spec = _with_sql_inline(spec, folder)
        for problem, fix in spec.contradictions():
            raise TierwiseError(f"{file}: {problem}", fix)
        after_load = folder / AFTER_LOAD_FILE
        workload = cls(
            name=folder.resolve().name,
            file=file,
            spec=spec,
            schema=_role_sql(folder / SCHEMA_FILE),
            after_load=_role_sql(after_load) if after_load.exists() else [],
        )
        workload.to_json(1)
        return workload

    def to_json(self, scale: float) -> str:
        """Load phase and transactions with every expression evaluated, as the clients in Rust read them.

        Raises:
            TierwiseError: naming the field whose value makes no sense at this scale.
        """
        if not scale > 0:
            raise TierwiseError(f"scale {scale} is not above 0", "give a positive scale")
        return json.dumps(_Resolver(self.spec, self.file, scale).workload(self.name))


def names() -> list[str]:
    """Workloads that ship with tierwise."""
    return sorted(folder.name for folder in _shipped().iterdir() if (folder / WORKLOAD_FILE).is_file())


class _Resolver:
    """Evaluates the expressions of a workload at one scale."""

    def __init__(self, spec: WorkloadSpec, file: str, scale: float) -> None:
        self.spec, self.file = spec, file
        self.names: dict[str, float] = {"scale": scale}
        for name, expression in spec.constants.items():
            self.names[name] = evaluate(expression, self.names, f"{file}: constants.{name}")

    def workload(self, name: str) -> dict[str, Any]:
        transactions = self.spec.transactions.items()
        return {
            "name": name,
            "think_ms": self.spec.think_ms,
            "tables": [self._table(name, table) for name, table in self.spec.tables.items()],
            "parameters": self._generators("parameters", self.spec.parameters),
            "transactions": [
                {"name": name, **one.model_dump(exclude={"steps": {"__all__": {"file"}}})}
                for name, one in transactions
            ],
        }

    def _table(self, name: str, table: Table) -> dict[str, Any]:
        rows = self._whole(f"tables.{name}.rows", table.rows)
        if rows < 1:
            raise TierwiseError(f"{self.file}: tables.{name}.rows is {rows}", "raise it or the scale")
        columns = self._generators(f"tables.{name}.columns", table.columns)
        return {"name": name, "rows": rows, "columns": columns}

    def _generators(self, where: str, generators: Mapping[str, Generator]) -> list[dict[str, Any]]:
        return [
            {"name": name, "generator": self._generator(f"{where}.{name}", generator)}
            for name, generator in generators.items()
        ]

    def _generator(self, where: str, generator: Generator) -> dict[str, Any]:
        try:
            return generator.resolve(lambda field, value: self._whole(f"{where}.{field}", value))
        except ValueError as error:
            raise TierwiseError(f"{self.file}: {where}: {error}", "mend the bounds or the scale") from error

    def _whole(self, where: str, expression: Whole) -> int:
        return round(evaluate(expression, self.names, f"{self.file}: {where}"))


def _with_sql_inline(spec: WorkloadSpec, folder: Path) -> WorkloadSpec:
    """The same with the statements of files in place of the files' names."""
    transactions = {}
    for name, transaction in spec.transactions.items():
        steps = []
        for number, step in enumerate(transaction.steps):
            where = f"{folder / WORKLOAD_FILE}: transactions.{name}.steps.{number}"
            statements = [step.sql] if isinstance(step.sql, str) else step.sql
            if (step.file is None) == (not statements):
                raise TierwiseError(where, "give either sql or file")
            if step.file is not None:
                statements = [_read(folder / step.file)]
            single = [one for text in statements for one in _core.split_statements(text)]
            if not single:
                raise TierwiseError(f"{where} holds no statement", "write one, or remove the step")
            steps.append(step.model_copy(update={"sql": single}))
        transactions[name] = transaction.model_copy(update={"steps": steps})
    return spec.model_copy(update={"transactions": transactions})


def _role_sql(path: Path) -> RoleSql:
    """Statements of a script; a line ``-- role: data`` says the role of all that follow."""
    sections = _ROLE_MARKER.split(_read(path))
    if _core.split_statements(sections[0]):
        raise TierwiseError(f"{path}: a statement before the first role", "begin with a line '-- role: data'")
    result: RoleSql = []
    for name, script in zip(sections[1::2], sections[2::2], strict=True):
        if name not in list(Role):
            raise TierwiseError(f"{path}: unknown role {name!r}", f"use one of {', '.join(Role)}")
        result += [(Role(name), statement) for statement in _core.split_statements(script)]
    return result


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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise TierwiseError(
            f"{path}: {problem}", "a workload is a folder of readable files; see docs/workloads.md"
        ) from error


def _shipped() -> Path:
    return Path(str(resources.files("tierwise"))) / "workloads"
