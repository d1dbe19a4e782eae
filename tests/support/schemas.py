"""Values against the JSON Schemas that ``tierwise schema`` prints."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from tierwise.cli import app


@cache
def schema(name: str) -> Draft202012Validator:
    content = json.loads(CliRunner().invoke(app, ["schema", name]).stdout)
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


def problems(name: str, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in schema(name).iter_errors(value)]
