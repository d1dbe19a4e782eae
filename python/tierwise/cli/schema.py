"""``tierwise schema``: JSON Schemas of files and of printed JSON, with the meaning of each field."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel, Field, create_model

from tierwise.cli.printing import print_text
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, read_shipped_toml
from tierwise.model.names import unknown_name_fix
from tierwise.model.output_files import SCHEMA_VERSION
from tierwise.results.measurements import StrictModel

MEANINGS_FILE = DATA / "field_meanings.toml"
"""``fields``: meaning of a field by its name; a table with the name of a type: its exceptions."""


def schema_with_meanings(made: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """A function that makes the same schema with a meaning for each field that has none."""

    def schema() -> dict[str, Any]:
        schema_ = made()
        _describe(schema_.get("title", ""), schema_)
        for name, part in schema_.get("$defs", {}).items():
            _describe(name, part)
        return schema_

    return schema


def _describe(name: str, part: Mapping[str, Any]) -> None:
    meanings = read_shipped_toml(MEANINGS_FILE)
    own, common = meanings.get(name, {}), meanings["fields"]
    for field, schema in part.get("properties", {}).items():
        if meaning := own.get(field) or common.get(field):
            schema.setdefault("description", meaning)


def print_schema(
    name: Annotated[
        str | None, typer.Argument(help="name of a schema; without it, all names are listed")
    ] = None,
) -> None:
    """Print a JSON Schema: of files that you write, and of results and other JSON.

    Editors check a study.toml, workload.toml, prices.toml or device profile with it.
    """
    if name is None:
        for known in SCHEMAS:
            print_text(known)
        return
    if name not in SCHEMAS:
        raise TierwiseError(f"unknown schema {name!r}", unknown_name_fix(name, SCHEMAS))
    content = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name]()}
    print_text(json.dumps(content, indent=2))


def _schema_of_model(module: str, name: str) -> Callable[[], dict[str, Any]]:
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


def _output_schema(name: str, base: str = "", **fields: str) -> Callable[[], dict[str, Any]]:
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
        model: type[BaseModel] = create_model(name, __base__=_model(base) if base else StrictModel, **content)
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
    "workload": _schema_of_model("lab.workloads.workload_spec", "WorkloadSpec"),
    "prices": _schema_of_model("device_models.prices", "PriceFile"),
    "instances": _schema_of_model("device_models.instances", "InstanceFile"),
    "weights": _schema_of_model("fleet.fleet_databases", "WeightsFile"),
    "validation": _schema_of_model("lab.validation.validation_spec", "ValidationSpec"),
    "device-profile": _device_profile,
    "result": _schema_of_model("results", "RunResult"),
    "study-info": _schema_of_model("results", "StudyInfo"),
    "recording": _schema_of_model("recording", "RecordingMetadata"),
    "buffer": _schema_of_model("recording.buffer_content", "BufferContent"),
    "observation": _schema_of_model("recording", "Observation"),
    "slot": _schema_of_model("lab.validation.slot_rows", "SlotRow"),
    "slot-prediction": _schema_of_model("lab.validation.recording_answers", "RecordingAnswers"),
    "model-error": _schema_of_model("predict", "ModelError"),
    "prediction": _output_schema("prediction", predictions="predict:Prediction[]", **_REPLAYED),
    "profile": _output_schema(
        "profile",
        breakdown="recording.breakdown:Breakdown",
        savings="predict.time_savings:TimeSavings",
        warnings="str[]",
        devices="recording:MountedDevice[]",
        data_directory_bytes="int?",
        usability="predict.usability:UsabilityFields?",
    ),
    "profile-by-file": _output_schema(
        "profile-by-file",
        relations="report.recording.tables_report:RelationRow[]",
        buffer="report.recording.tables_report:BufferUse?",
        unnamed="recording.breakdown:FileTraffic[]",
        warnings="str[]",
        usability="predict.usability:UsabilityFields?",
    ),
    "joint-prediction": _output_schema(
        "joint-prediction",
        predictions="predict:JointPrediction[]",
        usability="predict.usability:DatabaseUsability[]",
    ),
    "ranking": _output_schema("ranking", ranking="predict:Ranking", **_REPLAYED),
    "advice": _output_schema("advice", recorded="predict:RecordedRun", advice="advise:Advice"),
    "table-advice": _output_schema("table-advice", advice="advise.table_advice:TableAdvice", **_REPLAYED),
    "fleet-advice": _output_schema("fleet-advice", fleet="fleet.records:FleetAdvice"),
    "day": _output_schema("day", day="predict.timeline:DayTimeline"),
    "day-advice": _output_schema("day-advice", day_advice="advise:DayAdvice"),
    "verification": _output_schema("verification", verification="advise.verification:ForecastVerification"),
    "answer": _output_schema("answer", answer="lab.analysis.study_answer:StudyAnswer"),
    "comparison": _output_schema("comparison", "lab.analysis.results_comparison:ResultsComparison"),
    "simulation": _output_schema("simulation", "device_models.device_simulation:SimulationFigures"),
    "probe": _output_schema("probe", "probe:ProbeReport"),
    "disk": _output_schema("disk", "host.disk.disk:DiskStats"),
    "disks": _output_schema("disks", disks="cli.disk:ListedDisk[]"),
    "power-cut": _output_schema("power-cut", "host.disk.disk_config:PowerCutReport"),
    "accuracy": _output_schema("accuracy", accuracy="lab.validation.prediction_accuracy:PredictionAccuracy"),
    "record": _output_schema("record", "report.recording.recording_report:TakenRecording"),
    "recordings": _output_schema("recordings", recordings="cli.recording:ListedRecording[]"),
    "plan": _output_schema("plan", study="lab.studies.study:Study"),
    "studies": _output_schema("studies", studies="lab.studies.study:Study[]"),
    "workloads": _output_schema("workloads", workloads="lab.workloads.workload_spec:WorkloadSpec[]"),
    "cleanup": _output_schema("cleanup", "host.clean:Cleanup"),
    "devices": _output_schema(
        "devices", devices="device_models.device_simulation:DeviceSummary[]", texts="dict"
    ),
    "doctor": _output_schema("doctor", checks="host.doctor:MachineCheck[]"),
    "drive": _output_schema("drive", "device_models.profiles:ProfileOfMeasuredDrive"),
    "workload-check": _output_schema("workload-check", "results.result_schema:WorkloadCheck"),
}
"""Name -> function that makes the schema: first of files, then of the output with ``--format json``."""
SCHEMAS = {name: schema_with_meanings(made) for name, made in _MADE.items()}
"""The same, with a meaning for each field."""
