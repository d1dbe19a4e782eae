"""Meanings of fields in JSON Schemas: beside the field in the code, else from a shipped file by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tierwise.model.input_files import DATA

MEANINGS_FILE = DATA / "field_meanings.toml"
"""``fields``: meaning of a field by its name; a table with the name of a type: its exceptions."""


@cache
def meanings() -> Mapping[str, Mapping[str, str]]:
    """The content of the file."""
    return tomllib.loads(MEANINGS_FILE.read_text(encoding="utf-8"))


def described(made: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """A function that makes the same schema with a meaning for each field that has none."""

    def schema() -> dict[str, Any]:
        found = made()
        _describe(found.get("title", ""), found)
        for name, part in found.get("$defs", {}).items():
            _describe(name, part)
        return found

    return schema


def _describe(name: str, part: Mapping[str, Any]) -> None:
    own, common = meanings().get(name, {}), meanings()["fields"]
    for field, schema in part.get("properties", {}).items():
        if meaning := own.get(field) or common.get(field):
            schema.setdefault("description", meaning)
