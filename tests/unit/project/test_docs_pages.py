"""Pages of the documentation that are generated, and what hand-written ones must name."""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Mapping
from typing import Any

import pytest

from support.paths import ROOT
from tierwise import results
from tierwise.lab.analysis.measures import MEASURES
from tierwise.lab.analysis.paper_figures import SPEEDUP
from tierwise.results import measurements

REFERENCE = ROOT / "docs" / "reference"
RECORDS = [
    record
    for _, record in inspect.getmembers(results, inspect.isclass)
    if issubclass(record, results.StrictModel) and record is not results.StrictModel
] + [
    measurements.FlushCheck,
    measurements.FlushTimes,
]  # parts of a probe's result, which nothing imports by name


@pytest.fixture(scope="module")
def pages() -> Mapping[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "docs_pages.py"))


def test_every_field_of_results_has_a_type_and_a_meaning(pages: Mapping[str, Any]) -> None:
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", pages["results"](), re.DOTALL | re.MULTILINE))
    assert sections.keys() == {record.__name__ for record in RECORDS}
    for record in RECORDS:
        described = re.findall(
            r"^\| `(\w+)` \| \S[^|]* \| (?:yes)? \| \S", sections[record.__name__], re.MULTILINE
        )
        assert described == list(record.model_fields), record.__name__


def test_formats_are_those_of_the_schemas(pages: Mapping[str, Any]) -> None:
    assert set(re.findall(r"^## `([\w-]+)`$", pages["formats"](), re.MULTILINE)) == set(pages["SCHEMAS"])


def test_page_is_of_this_version() -> None:
    page = (REFERENCE / "results.md").read_text("utf-8")
    assert f"schema version {results.SCHEMA_VERSION}\n" in page
    for record in (results.RunResult, results.StudyInfo):
        assert record.model_fields["schema_version"].default == results.SCHEMA_VERSION


def test_every_measure_of_a_paper_is_named() -> None:
    page = (ROOT / "docs" / "how-to" / "report.md").read_text("utf-8")
    assert all(f"`{measure}`" in " ".join(page.split()) for measure in [*MEASURES, SPEEDUP])
