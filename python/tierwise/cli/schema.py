"""``tierwise schema``: JSON Schemas of files and of printed JSON, with the meaning of each field."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel, Field, create_model

from tierwise.cli.printing import echo
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, shipped
from tierwise.model.names import one_of
from tierwise.model.output_files import SCHEMA_VERSION
from tierwise.results.measurements import Record

MEANINGS_FILE = DATA / "field_meanings.toml"
"""``fields``: meaning of a field by its name; a table with the name of a type: its exceptions."""


def described(made: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """A function that makes the same schema with a meaning for each field that has none."""

    def schema() -> dict[str, Any]:
        schema_ = made()
        _describe(schema_.get("title", ""), schema_)
        for name, part in schema_.get("$defs", {}).items():
            _describe(name, part)
        return schema_

    return schema


def _describe(name: str, part: Mapping[str, Any]) -> None:
    meanings = shipped(MEANINGS_FILE)
    own, common = meanings.get(name, {}), meanings["fields"]
    for field, schema in part.get("properties", {}).items():
        if meaning := own.get(field) or common.get(field):
            schema.setdefault("description", meaning)


def schema(
    name: Annotated[
        str | None, typer.Argument(help="name of a schema; without it, all names are listed")
    ] = None,
) -> None:
    """Print a JSON Schema: of files that you write, and of results and other JSON.

    Editors check a study.toml, workload.toml, prices.toml or device profile with it.
    """
    if name is None:
        for known in SCHEMAS:
            echo(known)
        return
    if name not in SCHEMAS:
        raise TierwiseError(f"unknown schema {name!r}", one_of(name, SCHEMAS))
    content = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name]()}
    echo(json.dumps(content, indent=2))


def _of(module: str, name: str) -> Callable[[], dict[str, Any]]:
    """A function that returns the schema of a model; it imports the model on call."""

    def made() -> dict[str, Any]:
        model: type[BaseModel] = getattr(import_module(f"tierwise.{module}"), name)
        return model.model_json_schema()

    return made


def _study() -> dict[str, Any]:
    """Schema of a study's TOML file, where a placement's roles are at one level with its default."""
    from tierwise.lab.studies.study import Study

    study_schema = Study.model_json_schema()
    device = {"type": "string", "description": "name of a device of the study"}
    study_schema["$defs"]["Placement"] = {
        "type": "object",
        "properties": {"default": device},
        "propertyNames": {"anyOf": [{"const": "default"}, {"$ref": "#/$defs/Role"}]},
        "additionalProperties": device,
        "required": ["default"],
    }
    return study_schema


def _device_profile() -> dict[str, Any]:
    """Schema of a device profile's TOML file, made from what the compiled reader of profiles asks for."""
    from tierwise.device_models.profile_schema import profile_schema

    return profile_schema()


def _printed(name: str, base: str = "", **fields: str) -> Callable[[], dict[str, Any]]:
    """The schema of a command's output: a kind, its version, then the fields of a model or some fields.

    Args:
        base: module and name of the model whose fields are printed, for example ``probe:ProbeReport``.
        fields: name of a field -> module and name of its model, or a type of Python, followed by ``[]`` for
            a list or ``?`` for what may be null.
    """

    def made() -> dict[str, Any]:
        content: dict[str, Any] = {
            "schema_of": (Literal[name], Field(alias="schema")),
            "schema_version": (Literal[SCHEMA_VERSION], ...),
        }
        content |= {field: (_model(path), ...) for field, path in fields.items()}
        model: type[BaseModel] = create_model(name, __base__=_model(base) if base else Record, **content)
        return model.model_json_schema(mode="serialization")

    return made


def _model(path: str) -> Any:
    module, _, name = path.rstrip("[]?").partition(":")
    model = getattr(import_module(f"tierwise.{module}"), name) if name else getattr(builtins, module)
    if path.endswith("?"):
        return model | None
    return list.__class_getitem__(model) if path.endswith("[]") else model


_REPLAYED = {"recorded": "predict:RecordedRun", "usability": "predict.usability:UsabilityFields"}
_MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "study": _study,
    "workload": _of("lab.workloads.spec", "WorkloadSpec"),
    "prices": _of("device_models.prices", "PriceFile"),
    "instances": _of("device_models.instances", "InstanceFile"),
    "weights": _of("fleet.catalogue", "WeightsFile"),
    "validation": _of("lab.validation.spec", "ValidationSpec"),
    "device-profile": _device_profile,
    "result": _of("results", "RunResult"),
    "study-info": _of("results", "StudyInfo"),
    "recording": _of("recording", "About"),
    "buffer": _of("recording.buffer", "BufferContent"),
    "observation": _of("recording", "Observation"),
    "slot": _of("lab.validation.rows", "Row"),
    "slot-prediction": _of("lab.validation.answers", "Answered"),
    "model-error": _of("predict", "ModelError"),
    "prediction": _printed("prediction", predictions="predict:Prediction[]", **_REPLAYED),
    "profile": _printed(
        "profile",
        breakdown="recording.breakdown:Breakdown",
        savings="predict.savings:Savings",
        warnings="str[]",
        devices="recording:Device[]",
        data_directory_bytes="int?",
        usability="predict.usability:UsabilityFields?",
    ),
    "profile-by-file": _printed(
        "profile-by-file",
        relations="report.recording.tables:RelationRow[]",
        buffer="report.recording.tables:BufferUse?",
        unnamed="recording.breakdown:FileTraffic[]",
        warnings="str[]",
        usability="predict.usability:UsabilityFields?",
    ),
    "joint-prediction": _printed(
        "joint-prediction",
        predictions="predict:JointPrediction[]",
        usability="predict.usability:JudgedDatabase[]",
    ),
    "ranking": _printed("ranking", ranking="predict:Ranking", **_REPLAYED),
    "advice": _printed("advice", recorded="predict:RecordedRun", advice="advise:Advice"),
    "table-advice": _printed("table-advice", advice="advise.tables:TableAdvice", **_REPLAYED),
    "fleet-advice": _printed("fleet-advice", fleet="fleet.records:FleetAdvice"),
    "day": _printed("day", day="predict.timeline:Timeline"),
    "day-advice": _printed("day-advice", day_advice="advise:DayAdvice"),
    "verification": _printed("verification", verification="advise.verification:Verification"),
    "answer": _printed("answer", answer="lab.analysis.answer:Answer"),
    "comparison": _printed("comparison", "lab.analysis.sets:SetComparison"),
    "simulation": _printed("simulation", "device_models.simulation:Simulation"),
    "probe": _printed("probe", "probe:ProbeReport"),
    "disk": _printed("disk", "host.disk.disk:DiskStats"),
    "disks": _printed("disks", disks="cli.disk:ListedDisk[]"),
    "power-cut": _printed("power-cut", "host.disk.config:CutReport"),
    "accuracy": _printed("accuracy", accuracy="lab.validation.accuracy:Accuracy"),
    "record": _printed("record", "report.recording.recorded:Recorded"),
    "recordings": _printed("recordings", recordings="cli.recording:ListedRecording[]"),
    "plan": _printed("plan", study="lab.studies.study:Study"),
    "studies": _printed("studies", studies="lab.studies.study:Study[]"),
    "workloads": _printed("workloads", workloads="lab.workloads.spec:WorkloadSpec[]"),
    "cleanup": _printed("cleanup", "host.clean:Cleanup"),
    "devices": _printed("devices", devices="device_models.simulation:DeviceSummary[]", texts="dict"),
    "doctor": _printed("doctor", checks="host.doctor:Check[]"),
    "drive": _printed("drive", "device_models.profiles:ImportedDrive"),
    "workload-check": _printed("workload-check", "results.records:WorkloadCheck"),
}
"""Name -> function that makes the schema: first of files, then of the output with ``--format json``."""
SCHEMAS = {name: described(made) for name, made in _MADE.items()}
"""The same, with a meaning for each field."""
