"""Arithmetic in data files: ``3000 * scale``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from tierwise.errors import TierwiseError

_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


_LARGEST = 2.0**62


def evaluate(expression: int | float | str, names: Mapping[str, float], where: str) -> float:
    """Value of an expression of numbers, names, ``+ - * /`` and parentheses.

    Args:
        expression: what the data file says; a number stands for itself.
        names: what names mean.
        where: file and field, for the error.

    Raises:
        TierwiseError: if it is anything else, names what is unknown, or is too large for a database.
    """
    try:
        value = _value(ast.parse(str(expression).strip(), mode="eval").body, names)
        if not abs(value) < _LARGEST:
            raise ValueError("is not below 2^62")
        return value
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        problem = "is not arithmetic" if isinstance(error, SyntaxError) else str(error)
        raise TierwiseError(
            f"{where}: {expression!r} {problem}",
            f"use numbers, + - * / and parentheses, and the names {', '.join(names)}",
        ) from error


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("is not arithmetic")
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id=name):
            raise ValueError(f"names the unknown {name!r}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case _:
            raise ValueError("is not arithmetic")
