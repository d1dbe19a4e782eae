"""docs/reference/results.md names every field of the schema with its type, and no other."""

from __future__ import annotations

import inspect
import re
import types
import typing

import pytest

from support.paths import ROOT
from tierwise import results
from tierwise.report.study.paper import COMPARABLE

DOCS = ROOT / "docs"
PAGE = (DOCS / "reference" / "results.md").read_text("utf-8")
RECORDS = [
    record
    for _, record in inspect.getmembers(results, inspect.isclass)
    if issubclass(record, results.Record) and record is not results.Record
]
NAMES = {
    "int": "integer",
    "float": "number",
    "str": "text",
    "datetime": "time",
    "NoneType": "null",
    "Role": "role",
}


def type_name(annotation: typing.Any) -> str:
    """A type in the words of the page."""
    parts, origin = typing.get_args(annotation), typing.get_origin(annotation)
    if origin is typing.Literal:
        return "number" if isinstance(parts[0], int) else "text"
    if origin is list:
        return f"list of {type_name(parts[0])}"
    if origin is dict:
        return f"{type_name(parts[0])} → {type_name(parts[1])}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(type_name(part) for part in parts)
    return NAMES.get(annotation.__name__, annotation.__name__)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_is_described(record: type[results.Record]) -> None:
    section = re.search(rf"^## {record.__name__}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert section, f"docs/reference/results.md has no section {record.__name__}"
    described = re.findall(r"^\| `(\w+)` \| (.+?) \| \S", section[1], re.MULTILINE)
    fields = [(name, type_name(field.annotation)) for name, field in record.model_fields.items()]
    assert described == fields


def test_no_section_outlives_its_record() -> None:
    assert set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)) == {record.__name__ for record in RECORDS}


def test_page_is_of_this_version() -> None:
    assert f"schema version {results.SCHEMA_VERSION}\n" in PAGE


def test_every_measure_of_a_paper_is_named() -> None:
    page = (DOCS / "how-to" / "report.md").read_text("utf-8")
    assert all(f"`{measure}`" in " ".join(page.split()) for measure in COMPARABLE)
