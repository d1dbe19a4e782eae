"""Options that change a study, from the command line or from Python."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise.lab import engines
from tierwise.lab.studies.study import FILE_ENGINE, Overrides, Study
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import parse_as_model
from tierwise.model.names import unknown_name_fix
from tierwise.model.placement import EVERYTHING, DeviceSpec, Placement, Role, parse_placement

PAPER_SCALE = "paper"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True)
class StudyOptions:
    """Changes to a study, applied in the order of the fields.

    Attributes:
        quick: the study's own smaller size.
        scale: ``paper`` for the paper's size, or a number above 0.
        set: ``KEY=VALUE``, such as ``memory=256M``, ``constants.rows=1000`` or
            ``settings.postgres.work_mem=4MB``.
        clients: number of clients.
        duration_s: seconds of the measured phase, in place of a number of transactions.
        repeats: repeats of every run.
        devices: ``NAME=DIRECTORY``: a real directory, or a device profile, for a device of the study.
        place: ``ROLE=DEVICE,…``; each adds a placement that differs from the baseline in these roles.
        placements: names of the placements to run; all if empty. The baseline is run too.
        only: leave the baseline out.
        engine: replaces the study's first engine.
        own_storage: directory that replaces every device.
    """

    quick: bool = False
    scale: str | None = None
    set: list[str] = field(default_factory=list)
    clients: int | None = None
    duration_s: float | None = None
    repeats: int | None = None
    devices: list[str] = field(default_factory=list)
    place: list[str] = field(default_factory=list)
    placements: list[str] = field(default_factory=list)
    only: bool = False
    engine: str | None = None
    own_storage: Path | None = None

    def applied_to(self, study: Study) -> Study:
        """The study with all these options applied."""
        for overrides in self._overrides(study):
            study = study.with_overrides(overrides)
        for name, spec in (self._device(study, text) for text in self.devices):
            study = study.model_copy(update={"devices": {**study.devices, name: spec}})
        chosen = list(self.placements)
        for text in self.place:
            study, name = _placed(study, parse_placement(text))
            chosen += [name] if self.placements else []
        if self.own_storage is not None and (self.place or self.devices):
            option = "--place" if self.place else "--device"
            raise TierwiseError(
                f"{option}: --own-storage replaces every device, and would leave it without effect",
                f"leave out {option} or --own-storage",
            )
        if self.only and not chosen:
            chosen = [name for name in study.placements if name != study.baseline]
            if not chosen:
                raise TierwiseError(f"--only: study {study.name} has only its baseline", "leave it out")
        if chosen:
            study = study.with_placements(chosen if self.only else [study.baseline, *chosen])
        if self.engine is not None:
            study = study.on_engine(self.engine)
        for text in self.set:
            _require_heeded(text, study.engines[0])
        return study if self.own_storage is None else study.on_own_storage(self.own_storage)

    def _overrides(self, study: Study) -> list[Overrides]:
        overrides = [study.quick] if self.quick else []
        overrides += [study.paper_scale] if self.scale == PAPER_SCALE else []
        if self.placements:
            overrides = [override.model_copy(update={"placements": None}) for override in overrides]
        direct: dict[str, Any] = {
            "clients": self.clients,
            "seconds": self.duration_s,
            "repeats": self.repeats,
        }
        if self.scale is not None and self.scale != PAPER_SCALE:
            direct["scale"] = _number(self.scale)
        direct = {name: value for name, value in direct.items() if value is not None}
        given = parse_as_model(Overrides, direct, "options", "give a smaller number")
        options = [*(_set(text) for text in self.set), given]
        if all(any(getattr(option, name) for option in options) for name in ("transactions", "seconds")):
            raise TierwiseError(
                "--set transactions=… and a duration: a run ends after one of the two",
                "leave out --set transactions, or --duration and --set seconds",
            )
        return [*overrides, *options]

    @staticmethod
    def _device(study: Study, text: str) -> tuple[str, DeviceSpec]:
        name, equals, target = text.partition("=")
        if not equals or not target:
            raise TierwiseError(f"--device: {text!r} is not NAME=DIRECTORY", "write for example ssd=/mnt/ssd")
        if name not in study.devices:
            raise TierwiseError(
                f"--device: study {study.name} has no device {name!r}", unknown_name_fix(name, study.devices)
            )
        is_directory = Path(target).is_dir()
        return name, DeviceSpec(path=target) if is_directory else DeviceSpec(profile=target)


def _placed(study: Study, place: dict[str, str]) -> tuple[Study, str]:
    """The study with one more placement, and its name. A device unknown to the study is read as a profile."""
    base = study.placements[study.baseline]
    devices = dict(study.devices)
    names: dict[str, str] = {}
    for device in dict.fromkeys(place.values()):
        names[device] = device if device in study.devices else _free_name(device, devices)
        devices.setdefault(names[device], DeviceSpec(profile=device))
    named = {Role(role): names[device] for role, device in place.items() if role != EVERYTHING}
    everything = place.get(EVERYTHING)
    placement = Placement(
        name="-".join(f"{role}-{names[device]}" for role, device in place.items()),
        roles=named if everything else {**base.roles, **named},
        default=names[everything] if everything else base.default,
    )
    placements = {**study.placements, placement.name: placement}
    return study.model_copy(update={"devices": devices, "placements": placements}), placement.name


def _free_name(device: str, taken: Collection[str]) -> str:
    """A free device name within a study. It is part of a disk's name, so it is short."""
    short = _NOT_IN_A_NAME.sub("-", Path(device).stem.lower())
    names = (f"{short[-13:]}-{number}" if number else short[-16:] for number in itertools.count())
    return next(name for candidate in names if (name := candidate.strip("-")) not in taken)


def _require_heeded(text: str, engine: str) -> None:
    """Refuse a setting of an engine that does not run."""
    part, _, rest = text.partition(".")
    name = rest.partition(".")[0]
    if part == "settings" and engine != FILE_ENGINE and name not in (engine, engines.engine_family(engine)):
        raise TierwiseError(
            f"--set {text}: the study runs on {engine}", f"write settings.{engine}, or give --engine"
        )


def _set(text: str) -> Overrides:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise TierwiseError(f"--set: {text!r} is not KEY=VALUE", "write for example memory=256M")
    nested: Any = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    known = sorted(set(Overrides.model_fields) - {"placements", "sweep", "estimate_s"})
    return parse_as_model(Overrides, nested, f"--set {text}", f"keys are {', '.join(known)}")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise TierwiseError(f"--scale: {text!r} is no scale", 'give "paper" or a number above 0')
    return number
