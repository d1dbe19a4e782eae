"""Conversion of pgbench's scripts to the parameters and transactions of a workload.toml."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.lab.workloads.expression import syntax_tree
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text

SCALE = "max(1, round(scale))"
"""Value of pgbench's ``:scale``: a whole number."""

_RANDOM: dict[str, tuple[str, str | None]] = {
    "random": ("uniform", None),
    "random_zipfian": ("zipf", "exponent"),
    "random_gaussian": ("gaussian", "parameter"),
    "random_exponential": ("exponential", "parameter"),
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
}
_NAME = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r":([A-Za-z_]\w*)")

Resolve = Callable[[str], str]
Declare = Callable[[str, dict[str, Any]], str]


class UnsupportedExpression(Exception):  # noqa: N818
    """An expression that no generator can express; the message names the part."""


def parse_variable(name: str, expression: str, resolve: Resolve, declare: Declare) -> dict[str, Any]:
    """The generator that a variable is set to.

    Args:
        expression: of whole numbers, variables, operators and functions.
        resolve: returns the parameter of a variable at this place.
        declare: makes a parameter of a generator, for a draw within the expression; returns its name, which
            may differ from the requested one.

    Raises:
        UnsupportedExpression: naming the part that no generator can express.
    """
    if not _NAME.fullmatch(name):
        raise UnsupportedExpression(f"{name!r} is no name")
    try:
        # Apart from the colon before a variable, the supported syntax is Python's.
        tree = syntax_tree(_REFERENCE.sub(r"v_\1", expression))
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise UnsupportedExpression(f"{expression.strip()!r} is no arithmetic of whole numbers") from error
    reader = _Reader(name, resolve, declare)
    if isinstance(tree, ast.Call) and _function(tree) in _RANDOM:
        return reader.drawn(tree)
    return {"kind": "expression", "value": reader.value(tree)}


class _Reader:
    def __init__(self, name: str, resolve: Resolve, declare: Declare) -> None:
        self.name, self.resolve, self.declare = name, resolve, declare

    def value(self, node: ast.expr) -> str:
        """An expression of parameters."""
        match node:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return str(number)
            case ast.Name(id=name) if name.startswith("v_"):
                return self.resolve(name[2:])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.value(operand)})"
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return f"({self.value(left)} {_OPERATORS[type(op)]} {self.value(right)})"
            case ast.Call():
                return self._call(node)
        raise UnsupportedExpression(f"{_written(node)} is no arithmetic of whole numbers")

    def drawn(self, call: ast.Call) -> dict[str, Any]:
        """A generator for one of pgbench's random functions."""
        function = _function(call)
        kind, shape = _RANDOM[function]
        wanted = 2 if shape is None else 3
        if len(call.args) != wanted:
            raise UnsupportedExpression(f"{function} takes {wanted} values")
        bounds = {"low": self._bound(call.args[0]), "high": self._bound(call.args[1])}
        return {"kind": kind, **bounds} | ({} if shape is None else {shape: _number(call.args[2])})

    def _call(self, call: ast.Call) -> str:
        function, args = _function(call), call.args
        if function in _RANDOM:
            return self.declare(f"{self.name}_draw", self.drawn(call))
        values = [self.value(argument) for argument in args]
        match function, values:
            case "mod", [left, right]:
                return f"({left} % {right})"
            case "abs", [value]:
                return f"abs({value})"
            case "least", [_, *_]:
                return reduce(lambda left, right: f"min({left}, {right})", values)
            case "greatest", [_, *_]:
                return reduce(lambda left, right: f"max({left}, {right})", values)
        raise UnsupportedExpression(f"the function {function}")

    def _bound(self, node: ast.expr) -> str:
        """A bound of a draw: it may depend on the scale, but on no drawn value."""
        match node:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return str(number)
            case ast.Name(id="v_scale"):
                return SCALE
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self._bound(operand)})"
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
                return f"({self._bound(left)} {_OPERATORS[type(op)]} {self._bound(right)})"
        raise UnsupportedExpression(f"the bound {_written(node)}, which is not a number or made of :scale")


def _function(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else _written(call.func)


def _number(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    raise UnsupportedExpression(f"{_written(node)}, which is not a number")


def _written(node: ast.expr) -> str:
    return re.sub(r"\bv_", ":", ast.unparse(node))


SUFFIXES = (".sql", ".pgbench")

_UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_STRING = r"[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'"
_QUOTED = rf"{_STRING}|\"(?:[^\"]|\"\")*\"|(?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)"
_COMMENTED = r"--[^\n]*|/\*.*?\*/"
_VARIABLE = re.compile(rf"{_QUOTED}|{_COMMENTED}|::|:(?P<name>[A-Za-z_]\w*)", re.DOTALL)
_IN_STRING = re.compile(r"(?<!:):([A-Za-z_]\w*)")
_PIECE = re.compile(
    rf"(?P<comment>{_COMMENTED})|(?P<quoted>{_QUOTED})|(?P<end>;)"
    r"|\\(?P<command>(?:[^\\\n]|\\\n|\\(?!\n))*)|(?P<space>\s+)|(?P<text>\w+|.)",
    re.DOTALL,
)
"""One piece of a script as psql's scanner splits it: a semicolon in quotes or comments is text."""
_BEGIN = re.compile(r"(BEGIN|START\s+TRANSACTION)(\s+(WORK|TRANSACTION))?", re.IGNORECASE)
_END = re.compile(r"(END|COMMIT)(\s+(WORK|TRANSACTION))?", re.IGNORECASE)
_CONTROL = re.compile(r"(BEGIN|START|END|COMMIT|ROLLBACK|ABORT|SAVEPOINT|RELEASE)\b", re.IGNORECASE)
_COMMENT = re.compile(_COMMENTED, re.DOTALL)
_RESULTS = ("gset", "aset")
_INSTEAD = (
    "use \\set and \\sleep, write the workload as TOML (docs/reference/workloads.md), "
    "or run pgbench on a server of yours and record that: tierwise record --pid PID"
)


_LOOKS_LIKE_SCRIPT = re.compile(
    r"\\(set|sleep|setrandom|if|shell|startpipeline)\b|"
    r"(BEGIN|START|SELECT|INSERT|UPDATE|DELETE|WITH|MERGE|CALL|EXECUTE|COPY|LOCK)\b.*;",
    re.DOTALL,
)
"""Begin of a file that holds a pgbench script, whatever its name."""
_CHANGES_SCHEMA = re.compile(
    r"(CREATE(?!\s+(LOCAL\s+|GLOBAL\s+)?TEMP)|DROP|ALTER|TRUNCATE|VACUUM|ANALYZE|REINDEX|CLUSTER|GRANT|REVOKE"
    r"|COMMENT)\b(\s+\w+)?",
    re.IGNORECASE,
)


def pgbench_scripts_in(folder: Path, without: Container[str]) -> list[Path]:
    """The scripts of a folder without a workload.toml; files called as in ``without`` are none."""
    scripts = []
    for path in sorted(path for path in folder.iterdir() if path.is_file() and path.name not in without):
        if path.suffix in SUFFIXES:
            scripts.append(path)
        elif _LOOKS_LIKE_SCRIPT.match(_bare(_beginning(path))):
            raise TierwiseError(
                f"{path}: looks like a script; only those that end in {' or '.join(SUFFIXES)} are read",
                "rename it, or name the scripts in a workload.toml (pgbench = [...])",
            )
    for path in scripts:
        if match := _CHANGES_SCHEMA.match(_bare(_beginning(path))):
            raise TierwiseError(
                f"{path}: {match[0].upper()} changes the schema; no transaction of a workload may",
                "move it to after_load.sql, or name the scripts in a workload.toml (pgbench = [...])",
            )
    return scripts


def _beginning(path: Path) -> str:
    """The first 64 KiB as text; empty if that is none."""
    try:
        with path.open("rb") as file:
            return file.read(1 << 16).decode("utf-8").lstrip("\ufeff")
    except (OSError, UnicodeDecodeError):
        return ""


def split_weight(file: str) -> tuple[str, float]:
    """``file@weight`` as pgbench takes it: name and weight, 1 if none is given."""
    name, at, weight = file.rpartition("@")
    return (name, float(weight)) if at and weight.isdigit() else (file, 1.0)


def read_pgbench_scripts(files: Sequence[tuple[Path, float]], constants: Iterable[str]) -> dict[str, Any]:
    """The fields of a workload.toml that is equivalent to the scripts.

    Args:
        files: scripts with their weights; each becomes a transaction of its file's name.
        constants: names of the workload's constants, which stand for pgbench's ``-D``.
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
    used = {name for transaction in transactions.values() for name in _bound(transaction["steps"][0]["sql"])}
    parameters = {name: parameter for name, parameter in shared.items() if name in _reached(used, shared)}
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
    _problems: list[tuple[int, str, str]] = field(default_factory=list)
    """Line, problem and fix of each construct that a workload cannot express."""
    _reads_results: bool = False
    """Whether a command sets variables from a query's result, so that their names are unknown here."""

    def read(self) -> None:
        text = read_text(self.path, "name a readable script")
        statement, first = "", 0
        for piece in _PIECE.finditer(text):
            if not statement and (piece["comment"] or piece["space"] or piece["end"]):
                continue
            line = text.count("\n", 0, piece.start()) + 1
            if piece["command"] is not None:
                self._close(first, statement, line, piece["command"])
                statement = ""
            elif piece["end"]:
                self._statement(first, statement)
                statement = ""
            else:
                first = first if statement else line
                statement += piece[0]
        if statement:
            self._statement(first, statement)
        self._raise_problems()
        if not self.statements:
            raise TierwiseError(f"{self.path} holds no statement", "write one")

    def autocommit(self) -> bool:
        """Whether the script begins no transaction; otherwise its BEGIN and END are removed."""
        transaction = True
        if _BEGIN.fullmatch(_bare(self.statements[0][1])) and _END.fullmatch(_bare(self.statements[-1][1])):
            begin_line = self.statements[0][0]
            self.statements = self.statements[1:-1]
            transaction = False
            if not self.statements:
                self._refuse(begin_line, "an empty transaction", "write a statement into it")
        for line, sql in self.statements:
            if match := _CONTROL.match(_bare(sql)):
                problem = f"{match[0].upper()} here"
                self._refuse(line, problem, "begin before the first statement, end behind the last")
        self._raise_problems()
        return transaction

    def _statement(self, line: int, sql: str) -> None:
        if self.sleep_ms:
            self._refuse(line, "\\sleep before a statement", "sleep at the end")
        self.statements.append((line, self._bind(line, sql.strip())))

    def _close(self, first: int, statement: str, line: int, command: str) -> None:
        """End the statement before a command, if there is one, then read the command."""
        text = " ".join(command.replace("\\\n", " ").split())
        name = text.partition(" ")[0]
        if statement:
            if name not in _RESULTS:
                self._refuse(first, "a statement without its ;", "end it before the command")
            self._statement(first, statement)
        self._command(line, name, text.removeprefix(name).strip())

    def _command(self, line: int, name: str, rest: str) -> None:
        match name:
            case "set":
                self._set(line, *rest.partition(" ")[::2])
            case "sleep":
                self._sleep(line, rest.split())
            case _:
                self._reads_results |= name in _RESULTS
                self._refuse(line, f"\\{name}", _INSTEAD)

    def _set(self, line: int, name: str, expression: str) -> None:
        try:
            generator = parse_variable(name, expression, self._resolve, self._declare_own)
        except UnsupportedExpression as error:
            self._refuse(line, f"\\set {name}: {error}", "see docs/reference/workloads.md, pgbench")
            generator = {"kind": "expression", "value": "0"}
        self._names[name] = self._declare_own(name, generator)

    def _sleep(self, line: int, words: list[str]) -> None:
        unit = words[1] if len(words) == 2 else "s"
        if len(words) not in (1, 2) or not words[0].isdigit() or unit not in _UNITS_MS:
            self._refuse(line, f"\\sleep {' '.join(words)}", "give a number and us, ms or s")
            return
        self.sleep_ms += int(words[0]) * _UNITS_MS[unit]

    def _bind(self, first: int, sql: str) -> str:
        def renamed(match: re.Match[str]) -> str:
            line = first + sql.count("\n", 0, match.start())
            if match["name"] is None:
                self._check_string(line, match[0])
                return match[0]
            try:
                return f":{self._resolve(match['name'])}"
            except UnsupportedExpression as error:
                if not self._reads_results:
                    self._refuse(line, str(error), "\\set it, or give a constant")
                return match[0]

        return _VARIABLE.sub(renamed, sql)

    def _check_string(self, line: int, text: str) -> None:
        """pgbench replaces a variable inside quotes; a parameter of a statement cannot stand there."""
        if text[0] == '"':
            return
        for name in _IN_STRING.findall(text):
            if name in self._names or name in self.constants or name in ("client_id", "scale"):
                fix = f"write it outside the quotes, as in 'text' || :{name}"
                self._refuse(line, f"the variable :{name} inside quotes", fix)

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

    def _refuse(self, line: int, problem: str, fix: str) -> None:
        self._problems.append((line, problem, fix))

    def _raise_problems(self) -> None:
        """Raise one error with every problem of the script, in the order of its lines."""
        if not self._problems:
            return
        problems = sorted(dict.fromkeys(self._problems))
        fixes = dict.fromkeys(fix for _, _, fix in problems)
        (line, problem, _), *others = problems
        more = "".join(f"; line {line}: {problem}" for line, problem, _ in others)
        raise TierwiseError(f"{self.path}:{line}: {problem}{more}", "; ".join(fixes))


def _bare(sql: str) -> str:
    return _COMMENT.sub(" ", sql).strip()


def _bound(statements: Iterable[str]) -> set[str]:
    return {name for sql in statements for name in _core.statement_parameters(sql)}


def _reached(names: set[str], parameters: dict[str, dict[str, Any]]) -> set[str]:
    """The names, and all names that their expressions use."""
    reached: set[str] = set()
    while names:
        reached |= names
        made = [parameters[name].get("value", "") for name in names if name in parameters]
        names = {word for text in made for word in re.findall(r"[A-Za-z_]\w*", str(text))} - reached
    return reached
