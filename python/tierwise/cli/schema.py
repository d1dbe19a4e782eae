"""``tierwise schema``: JSON Schemas of files that users write and of JSON that tierwise writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from tierwise.model.errors import TierwiseError
from tierwise.model.suggestions import one_of


def schema(
    name: Annotated[str | None, typer.Argument(help="all names are listed if none is given")] = None,
) -> None:
    """Print a JSON Schema: of results, recordings, predictions, advice, studies or workloads.

    Editors check a study.toml or workload.toml with it.
    """
    if name is None:
        for known in SCHEMAS:
            typer.echo(known)
        return
    if name not in SCHEMAS:
        raise TierwiseError(f"unknown schema {name!r}", one_of(name, SCHEMAS))
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name]()}
    typer.echo(json.dumps(found, indent=2))


def _of(module: str, name: str) -> Callable[[], dict[str, Any]]:
    """The schema of a model, which is imported when it is asked for."""

    def made() -> dict[str, Any]:
        from importlib import import_module

        model: type[BaseModel] = getattr(import_module(f"tierwise.{module}"), name)
        return model.model_json_schema()

    return made


def _study() -> dict[str, Any]:
    """A study as its TOML file has it: roles of a placement stand beside its default."""
    from tierwise.studies.spec import Study

    found = Study.model_json_schema()
    device = {"type": "string", "description": "name of a device of the study"}
    found["$defs"]["Placement"] = {
        "type": "object",
        "properties": {"default": device},
        "propertyNames": {"anyOf": [{"const": "default"}, {"$ref": "#/$defs/Role"}]},
        "additionalProperties": device,
        "required": ["default"],
    }
    return found


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "study": _study,
    "workload": _of("workloads.spec", "WorkloadSpec"),
    "result": _of("results", "RunResult"),
    "study-info": _of("results", "StudyInfo"),
    "recording": _of("recording", "About"),
    "prediction": _of("predict", "Prediction"),
    "ranking": _of("predict", "Ranking"),
    "advice": _of("advise", "Advice"),
    "disk": _of("host.disk.stats", "DiskStats"),
    "probe": _of("probe", "ProbeReport"),
}
