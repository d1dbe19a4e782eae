"""Texts of recordings and users, quoted for each format: none of them ends a line, a string or a comment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tierwise.model.names import printable


def comment(text: str, mark: str = "#") -> str:
    """A comment of one line."""
    return f"{mark} {printable(text)}"


def hcl(text: str) -> str:
    """A string of Terraform's language without interpolation: ``${`` and ``%{`` are literal."""
    return _quoted(text).replace("${", "$${").replace("%{", "%%{")


def yaml_string(text: str) -> str:
    """A double-quoted string of YAML, in which JSON's escapes mean the same."""
    return _quoted(text)


def without_jinja(text: str) -> str:
    """A text without Jinja's opening marks, which Ansible would obey in any string of a playbook."""
    for mark in ("{{", "{%", "{#"):
        while mark in text:
            text = text.replace(mark, f"{{ {mark[1]}")
    return text


def yaml_lines(value: Any, indent: int = 0) -> Iterator[str]:
    """Lines of YAML for mappings, lists, strings, numbers and booleans; a :class:`Block` is literal text."""
    space = " " * indent
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _yaml_item(f"{space}{key}:", one, indent)
    else:
        for one in value:
            lines = list(yaml_lines(one, indent + 2)) if isinstance(one, dict | list) else [yaml_scalar(one)]
            yield f"{space}- {lines[0].lstrip()}"
            yield from lines[1:]


class Block(str):
    """Text of several lines that YAML holds as a literal block; printable but for its line feeds."""

    __slots__ = ()


def yaml_scalar(value: str | int | bool) -> str:
    """One value of YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else yaml_string(value)


def joined(lines: Iterable[str]) -> str:
    """Lines as a file."""
    return "\n".join(lines) + "\n"


def _yaml_item(key: str, value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, Block):
        yield f"{key} |"
        yield from (f"{' ' * (indent + 2)}{printable(line, chr(9))}".rstrip() for line in value.splitlines())
    elif isinstance(value, dict | list) and value:
        yield key
        yield from yaml_lines(value, indent + 2)
    else:
        yield f"{key} {yaml_scalar(value)}"


def _quoted(text: str) -> str:
    return json.dumps(printable(text), ensure_ascii=False)
