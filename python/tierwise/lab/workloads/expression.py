"""Arithmetic in data files: ``round(3000 * scale)``; evaluated here, or made into terms for the clients."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from tierwise.model.errors import TierwiseError

Term = str | dict[str, Any]
"""``{"number": 5}``, ``{"value": "name"}``, or the name of an operation on the terms before it."""

_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"round": round, "min": min, "max": max}
_LARGEST = 2.0**62
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_MARK = "v_"

_TERMS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Mod: "remainder",
}
_TERM_FUNCTIONS = {"abs": "absolute", "min": "least", "max": "greatest"}


def evaluate_expression(expression: int | float | str, names: Mapping[str, float], where: str) -> float:
    """Value of an expression of numbers, names, ``+ - * /``, parentheses, ``round``, ``min`` and ``max``."""
    try:
        value = _value(_parse(str(expression)), names)
        if not abs(value) < _LARGEST:
            raise ValueError("is not below 2^62")
        return value
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        problem = "is not arithmetic" if isinstance(error, SyntaxError) else str(error)
        raise TierwiseError(
            f"{where}: {expression!r} {problem}",
            f"use numbers, + - * /, parentheses, round, min and max, and the names {', '.join(names)}",
        ) from error


def postfix_terms(expression: str) -> list[Term]:
    """Terms of whole-number arithmetic in postfix order.

    Takes whole numbers, names, ``+ - * / %``, parentheses, ``abs``, ``min`` and ``max``; ``/`` truncates, as
    in SQL.

    Raises:
        ValueError: naming the part that is anything else.
    """
    try:
        return _terms(_parse(expression))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression!r} is not arithmetic") from error


def syntax_tree(text: str) -> ast.expr:
    """The syntax tree of a Python expression.

    Raises:
        SyntaxError, RecursionError, MemoryError or ValueError: if it is none, also where Python would warn.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)
        return ast.parse(text.strip(), mode="eval").body


def _parse(text: str) -> ast.expr:
    """The tree, with a mark before each name, because some valid names are keywords of Python."""
    return syntax_tree(_NAME.sub(rf"{_MARK}\g<0>", text))


def _name(node: ast.expr) -> str | None:
    return node.id.removeprefix(_MARK) if isinstance(node, ast.Name) else None


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name():
            name = str(_name(node))
            if name not in names:
                raise ValueError(f"names the unknown {name!r}")
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=func, args=args, keywords=[]) if (function := _name(func)) in _FUNCTIONS:
            if len(args) != (1 if function == "round" else 2):
                raise ValueError(f"gives {function} {len(args)} values")
            return _FUNCTIONS[str(function)](*(_value(argument, names) for argument in args))
        case _:
            raise ValueError("is not arithmetic")


def _terms(node: ast.expr) -> list[Term]:
    match node:
        case ast.Constant(value=int() as number) if number < _LARGEST:
            return [{"number": number}]
        case ast.Name():
            return [{"value": _name(node)}]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return [*_terms(operand), "negate"]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _TERMS:
            return [*_terms(left), *_terms(right), _TERMS[type(op)]]
        case ast.Call(func=func, args=args, keywords=[]) if (function := _name(func)) in _TERM_FUNCTIONS:
            if len(args) != (1 if function == "abs" else 2):
                raise ValueError(f"{function} is given {len(args)} values")
            return [*(term for argument in args for term in _terms(argument)), _TERM_FUNCTIONS[str(function)]]
        case _:
            written = re.sub(rf"\b{_MARK}", "", ast.unparse(node))
            raise ValueError(f"{written!r} is not whole-number arithmetic")
