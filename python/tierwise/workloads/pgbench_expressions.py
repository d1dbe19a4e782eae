"""The expressions of pgbench's ``\\set``, as generators."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

from tierwise.workloads.expression import syntax_tree

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
_VARIABLE = re.compile(r":([A-Za-z_]\w*)")

Resolve = Callable[[str], str]
Declare = Callable[[str, dict[str, Any]], str]


class UnsupportedExpression(Exception):  # noqa: N818
    """An expression that no generator can express; the message names the part."""


def parse(name: str, expression: str, resolve: Resolve, declare: Declare) -> dict[str, Any]:
    """The generator that a variable is set to.

    Args:
        name: of the variable.
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
        tree = syntax_tree(_VARIABLE.sub(r"v_\1", expression))
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
        values = [self.value(one) for one in args]
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
