"""Workloads: schema, load phase and transactions, as data (the format: docs/workloads.md)."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from tierwise import _core
from tierwise.errors import TierwiseError
from tierwise.expression import evaluate
from tierwise.generators import Counter, Generator, Sequence, Whole
from tierwise.roles import Role

WORKLOAD_FILE = "workload.toml"
SCHEMA_FILE = "schema.sql"
AFTER_LOAD_FILE = "after_load.sql"

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
RoleSql = list[tuple[Role, str]]
"""Single statements, each with the role of what it creates."""

_ROLE_MARKER = re.compile(r"^--\s*role:\s*(\S+)\s*$", re.MULTILINE)


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
        _require_consistent(spec, file)
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
            self.names[name] = self._evaluate(f"constants.{name}", expression)

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
        rows = self._evaluate(f"tables.{name}.rows", table.rows)
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
            return generator.resolve(lambda field, value: self._evaluate(f"{where}.{field}", value))
        except ValueError as error:
            raise TierwiseError(f"{self.file}: {where}: {error}", "mend the bounds or the scale") from error

    def _evaluate(self, where: str, expression: Whole | float) -> int:
        return evaluate(expression, self.names, f"{self.file}: {where}")


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
            steps.append(step.model_copy(update={"sql": single}))
        transactions[name] = transaction.model_copy(update={"steps": steps})
    return spec.model_copy(update={"transactions": transactions})


def _require_consistent(spec: WorkloadSpec, file: str) -> None:
    for problem, fix in _contradictions(spec):
        raise TierwiseError(f"{file}: {problem}", fix)


def _contradictions(spec: WorkloadSpec) -> Iterator[tuple[str, str]]:
    used: set[str] = set()
    for name, transaction in spec.transactions.items():
        if name == "all":
            yield "transactions.all", "choose another name; results use this one for all transactions"
        for number, step in enumerate(transaction.steps):
            where = f"transactions.{name}.steps.{number}"
            yield from _step_contradictions(spec, step, where)
            used |= {str(step.repeat), *_bound(step)}
    for name in spec.parameters:
        if name not in used:
            yield f"parameters.{name} is used by no statement", "use it as :" + name + ", or remove it"
    for name, table in spec.tables.items():
        for column, generator in table.columns.items():
            if isinstance(generator, Sequence):
                yield f"tables.{name}.columns.{column}: a sequence", "use a counter for the number of the row"


def _step_contradictions(spec: WorkloadSpec, step: Step, where: str) -> Iterator[tuple[str, str]]:
    known = ", ".join(spec.parameters) or "none"
    bound = _bound(step)
    for name in bound - spec.parameters.keys():
        yield (
            f"{where}.sql uses the unknown parameter :{name}",
            f"declare it under [parameters] (there: {known})",
        )
    for name in set(step.draw) - bound:
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
