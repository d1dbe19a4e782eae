"""Conversion of pgbench's scripts to the parameters and transactions of a workload.toml."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.workloads.pgbench_expressions import SCALE, UnsupportedExpression, parse

SUFFIXES = (".sql", ".pgbench")

_UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_QUOTED = r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/"
_VARIABLE = re.compile(rf"{_QUOTED}|::|:([A-Za-z_]\w*)", re.DOTALL)
_COMMAND = re.compile(rf"{_QUOTED}|\\(\w+)", re.DOTALL)
_BEGIN = re.compile(r"(BEGIN|START\s+TRANSACTION)(\s+(WORK|TRANSACTION))?", re.IGNORECASE)
_END = re.compile(r"(END|COMMIT)(\s+(WORK|TRANSACTION))?", re.IGNORECASE)
_CONTROL = re.compile(r"(BEGIN|START|END|COMMIT|ROLLBACK|ABORT|SAVEPOINT|RELEASE)\b", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def split_weight(file: str) -> tuple[str, float]:
    """``file@weight`` as pgbench takes it: name and weight, 1 if none is given."""
    name, at, weight = file.rpartition("@")
    return (name, float(weight)) if at and weight.isdigit() else (file, 1.0)


def read_scripts(files: Sequence[tuple[Path, float]], constants: Iterable[str]) -> dict[str, Any]:
    """The fields of a workload.toml that is equivalent to the scripts.

    Args:
        files: scripts with their weights; each becomes a transaction of its file's name.
        constants: names of the workload's constants, which stand for pgbench's ``-D``.

    Raises:
        TierwiseError: naming file, line and construct, if no workload can express a script.
    """
    shared: dict[str, dict[str, Any]] = {}
    transactions: dict[str, Any] = {}
    think_ms: set[float] = set()
    for path, weight in files:
        script = _Script(path, shared, set(constants))
        script.read()
        autocommit = script.autocommit()
        step = {"sql": [sql for _, sql in script.statements]}
        name = path.stem if path.stem not in transactions else path.name
        transactions[name] = {"weight": weight, "autocommit": autocommit, "steps": [step]}
        think_ms.add(script.sleep_ms)
        if len(think_ms) > 1:
            raise TierwiseError(f"{path}: \\sleep: the scripts sleep differently", "let all sleep the same")
    used = {name for one in transactions.values() for name in _bound(one["steps"][0]["sql"])}
    parameters = {name: one for name, one in shared.items() if name in _reached(used, shared)}
    return {"parameters": parameters, "transactions": transactions, "think_ms": max(think_ms, default=0.0)}


@dataclass
class _Script:
    """One script, read from top to bottom.

    A variable that is set again becomes another parameter from there on, as does one that another script has
    set to something else.
    """

    path: Path
    parameters: dict[str, dict[str, Any]]
    constants: set[str]
    statements: list[tuple[int, str]] = field(default_factory=list)
    sleep_ms: float = 0.0
    _names: dict[str, str] = field(default_factory=dict)
    _own: set[str] = field(default_factory=set)
    _pending: list[str] = field(default_factory=list)
    _pending_from: int = 0

    def read(self) -> None:
        lines = self._text().splitlines()
        number = 0
        while number < len(lines):
            first, line = number + 1, lines[number]
            number += 1
            if not line.lstrip().startswith("\\"):
                self._sql_line(first, line)
                continue
            while line.endswith("\\") and number < len(lines):
                line = line[:-1] + " " + lines[number]
                number += 1
            self._finish_sql()
            self._command(first, line.strip()[1:])
        self._finish_sql(at_end=True)
        if not self.statements:
            raise TierwiseError(f"{self.path} holds no statement", "write one")

    def autocommit(self) -> bool:
        """Whether the script begins no transaction; otherwise its BEGIN and END are removed."""
        if _BEGIN.fullmatch(_bare(self.statements[0][1])) and _END.fullmatch(_bare(self.statements[-1][1])):
            begin_line = self.statements[0][0]
            self.statements = self.statements[1:-1]
            if not self.statements:
                raise self._refusal(begin_line, "an empty transaction", "write a statement into it")
            transaction = False
        else:
            transaction = True
        for line, sql in self.statements:
            if found := _CONTROL.match(_bare(sql)):
                problem = f"{found[0].upper()} here"
                raise self._refusal(line, problem, "begin before the first statement, end behind the last")
        return transaction

    def _text(self) -> str:
        return read_text(self.path, "name a readable script")

    def _sql_line(self, number: int, line: str) -> None:
        if not self._pending:
            self._pending_from = number
        if self._pending or line.strip():
            self._pending.append(line)
        text = "\n".join(self._pending)
        if _bare(text).endswith(";") and text.count("'") % 2 == 0:
            self._finish_sql()

    def _finish_sql(self, at_end: bool = False) -> None:
        text = "\n".join(self._pending)
        statements = _core.split_statements(text)
        for found in _COMMAND.finditer(text):
            if found[1]:
                raise self._refusal(self._pending_from, f"\\{found[1]} behind a statement", "leave it out")
        if statements and not at_end and not _bare(text).endswith(";"):
            raise self._refusal(self._pending_from, "a statement without its ;", "end it before the command")
        if statements and self.sleep_ms:
            raise self._refusal(self._pending_from, "\\sleep before a statement", "sleep at the end")
        self.statements += [(self._pending_from, self._bind(sql)) for sql in statements]
        self._pending = []

    def _command(self, line: int, text: str) -> None:
        name, _, rest = text.partition(" ")
        match name:
            case "set":
                self._set(line, *rest.strip().partition(" ")[::2])
            case "sleep":
                self._sleep(line, rest.split())
            case _:
                known = "use \\set and \\sleep, or write the workload as TOML (docs/reference/workloads.md)"
                raise self._refusal(line, f"\\{name}", known)

    def _set(self, line: int, name: str, expression: str) -> None:
        try:
            generator = parse(name, expression, self._resolve, self._declare_own)
        except UnsupportedExpression as error:
            raise self._refusal(
                line, f"\\set {name}: {error}", "see docs/reference/workloads.md, pgbench"
            ) from error
        self._names[name] = self._declare_own(name, generator)

    def _sleep(self, line: int, words: list[str]) -> None:
        unit = words[1] if len(words) == 2 else "s"
        if len(words) not in (1, 2) or not words[0].isdigit() or unit not in _UNITS_MS:
            raise self._refusal(line, f"\\sleep {' '.join(words)}", "give a number and us, ms or s")
        self.sleep_ms += int(words[0]) * _UNITS_MS[unit]

    def _bind(self, sql: str) -> str:
        def renamed(found: re.Match[str]) -> str:
            return f":{self._resolve(found[1])}" if found[1] else found[0]

        try:
            return _VARIABLE.sub(renamed, sql)
        except UnsupportedExpression as error:
            raise self._refusal(self._pending_from, str(error), "\\set it, or give a constant") from error

    def _resolve(self, variable: str) -> str:
        """The current parameter of a variable."""
        if variable in self._names:
            return self._names[variable]
        if variable == "client_id":
            return self._declare(variable, {"kind": "expression", "value": "client"})
        if variable == "scale":
            return self._declare(variable, {"kind": "uniform", "low": SCALE, "high": SCALE})
        if variable in self.constants:
            return self._declare(variable, {"kind": "uniform", "low": variable, "high": variable})
        raise UnsupportedExpression(f"the unknown variable :{variable}")

    def _declare_own(self, wanted: str, generator: dict[str, Any]) -> str:
        """A parameter that is new to this script."""
        name = self._declare(wanted, generator, self._own)
        self._own.add(name)
        return name

    def _declare(self, wanted: str, generator: dict[str, Any], taken: Container[str] = ()) -> str:
        name, number = wanted, 2
        while name in taken or self.parameters.get(name, generator) != generator:
            name, number = f"{wanted}_{number}", number + 1
        self.parameters[name] = generator
        return name

    def _refusal(self, line: int, problem: str, fix: str) -> TierwiseError:
        return TierwiseError(f"{self.path}:{line}: {problem}", fix)


def _bare(sql: str) -> str:
    return _COMMENT.sub(" ", sql).strip()


def _bound(statements: Iterable[str]) -> set[str]:
    return {name for sql in statements for name in _core.statement_parameters(sql)}


def _reached(names: set[str], parameters: dict[str, dict[str, Any]]) -> set[str]:
    """The names, and all names that their expressions use."""
    found: set[str] = set()
    while names:
        found |= names
        made = [parameters[name].get("value", "") for name in names if name in parameters]
        names = {word for text in made for word in re.findall(r"[A-Za-z_]\w*", str(text))} - found
    return found
