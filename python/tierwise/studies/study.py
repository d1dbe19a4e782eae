"""Reads studies and checks them for contradictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, parse_toml, read_text
from tierwise.model.names import one_of
from tierwise.studies import sweep
from tierwise.studies.spec import Overrides, Study

__all__ = ["FILE_ENGINE", "Overrides", "Study", "load", "names", "parse"]

_SHIPPED = DATA / "studies"
_MOST_RUNS = 100_000
FILE_ENGINE = "file"
"""Engine name of studies without a database: access patterns on a file."""


def names() -> list[str]:
    """Studies that ship with tierwise."""
    return sorted(
        file.name.removesuffix(".toml") for file in _SHIPPED.iterdir() if file.name.endswith(".toml")
    )


def load(name_or_path: str) -> Study:
    """Read a study by the name of one that ships with tierwise, or by the path of a TOML file.

    Raises:
        TierwiseError: naming the file and field, if there is no such study or it is not valid.
    """
    given = Path(name_or_path)
    if given.suffix == ".toml":
        return parse(read_text(given, "name a readable study file"), str(given))
    if name_or_path not in names():
        fix = f"{one_of(name_or_path, names())}, or the path of a .toml file"
        raise TierwiseError(f"unknown study {name_or_path!r}", fix)
    return parse((_SHIPPED / f"{name_or_path}.toml").read_text("utf-8"), f"{name_or_path}.toml")


def parse(text: str, file: str) -> Study:
    """Read a study from TOML.

    Raises:
        TierwiseError: naming ``file`` and the field.
    """
    raw = parse_toml(text, file)
    try:
        study = Study.model_validate(_with_names(raw))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise TierwiseError(f"{file}: {field}: {first['msg']}", "mend that field") from error
    _require_consistent(study, file)
    return study


def _with_names(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Placements are written ``[placements.NAME] log = "ssd"``: roles and the default at one level."""
    written = raw.get("placements", {})
    if not isinstance(written, dict) or not all(isinstance(body, dict) for body in written.values()):
        return dict(raw)  # validation says what is wrong
    placements = {
        name: {
            "name": name,
            "default": body.get("default"),
            "roles": {role: device for role, device in body.items() if role != "default"},
        }
        for name, body in written.items()
    }
    return {**raw, "placements": placements}


def _require_consistent(study: Study, file: str) -> None:
    for placement in study.placements.values():
        placement.require_known(study.devices, file)
    for problem, fix in (*_unknown_names(study), *_contradictions(study)):
        raise TierwiseError(f"{file}: {problem}", fix)


def _unknown_names(study: Study) -> Iterator[tuple[str, str]]:
    """Names of placements, variants and swept settings that the study does not define."""
    placements = {"baseline": study.baseline} | {f"paper.{i}": f.placement for i, f in enumerate(study.paper)}
    for part, overrides in (("quick", study.quick), ("paper_scale", study.paper_scale)):
        placements |= {f"{part}.placements.{name}": name for name in overrides.placements or ()}
    for field, name in placements.items():
        if name not in study.placements:
            yield (
                f"{field} names the unknown placement {name!r}",
                f"use one of {', '.join(study.placements)}",
            )
    for name in study.sweep.variant:
        if name not in study.variants:
            known = ", ".join(study.variants) or "none"
            yield f"sweep.variant names {name!r}", f"define it under [variants] (there: {known})"
    swept = sweep.values(study.sweep)
    for number, figure in enumerate(study.paper):
        for name in figure.setting.keys() - swept.keys():
            known = ", ".join(swept) or "none"
            yield f"paper.{number}.setting names {name!r}, which is not swept", f"use one of these: {known}"


def _contradictions(study: Study) -> Iterator[tuple[str, str]]:
    if study.transactions is not None and study.seconds is not None:
        yield "transactions and seconds", "give one of the two, or none for a workload of laps"
    if bool(study.patterns) != (study.engines == [FILE_ENGINE]):
        yield (
            f'engines and patterns: patterns run on the engine "{FILE_ENGINE}" and on no other',
            f'write engines = ["{FILE_ENGINE}"] with patterns, or another engine without',
        )
    faulty = study.cuts is not None or study.deaths is not None
    if faulty and study.seconds is None:
        yield "seconds: devices fail while clients commit", "give the longest time before a fault"
    if study.cuts is not None and study.deaths is not None:
        yield "cuts and deaths", "give one of the two"
    if study.patterns and study.seconds is None:
        yield "seconds: patterns run for a time", "give seconds"
    runs = study.repeats * len(study.placements) * sweep.count(study.sweep)
    if runs > _MOST_RUNS:
        yield f"{runs:,} runs, above {_MOST_RUNS:,}", "lower repeats, or sweep fewer values"
    for name, device in study.devices.items():
        if (device.profile is None) == (device.path is None):
            yield f"devices.{name}", "give either profile or path"
        if device.lies_about_flush and device.profile is None:
            yield f"devices.{name}: lies_about_flush", "give it to an emulated device only"
        if device.failed_member and device.profile is None:
            yield f"devices.{name}: failed_member", "give it to an emulated array only"
        if faulty and device.path is not None:
            yield f"devices.{name}: a real device cannot be made to fail", "give a profile"
