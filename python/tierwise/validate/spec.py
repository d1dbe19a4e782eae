"""What a validation runs, as data: cases, devices and placements; what is recorded, and what is predicted."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from tierwise.errors import TierwiseError
from tierwise.placement import DeviceSpec, Placement
from tierwise.results.measurements import Record
from tierwise.roles import Role
from tierwise.spelling import one_of
from tierwise.study.spec import Caches, Size, Study

SHIPPED = "validate.toml"
_MOST_DIFFERENT_CLIENTS = 64


class Selection(Record):
    """A smaller validation: some of the cases, on some of their placements."""

    cases: list[str] = []
    """Names with engine and clients, as ``order_entry-postgres-10``; all if none are given."""
    placements: list[str] = []
    """All if none are given; what is recorded always runs."""
    repeats: PositiveInt = 1


class CaseSpec(Record):
    """A workload in one size, on some engines, with some numbers of clients."""

    workload: str
    engines: list[str] = Field(min_length=1)
    clients: list[PositiveInt] = Field(default=[1], max_length=_MOST_DIFFERENT_CLIENTS)
    scale: PositiveFloat = 1.0
    constants: dict[str, float] = {}
    seconds: PositiveFloat | None = None
    """Length of a mix; not given for laps."""
    recorded_seconds: PositiveFloat | None = None
    """The same of a run that is recorded."""
    duty: float = Field(default=0.2, gt=0, le=1)
    """Of a mix; laps are recorded whole."""
    warmup_transactions: int = 0
    caches: Caches = "cold"
    cap_s: PositiveFloat | None = None
    memory: Size | None = None
    placements: list[str] = Field(min_length=1)
    """Predicted and measured, besides those that are recorded."""
    sizes: dict[Role, Size] = {}
    settings: dict[str, dict[str, str]] = {}


class Case(Record):
    """One workload on one engine with one number of clients."""

    name: str
    workload: str
    spec: CaseSpec
    study: Study
    """Its placements are those that are predicted and measured."""


class ValidationSpec(Record):
    """The whole of a validation."""

    recorded: list[str] = Field(min_length=1)
    """Placements under which each case is recorded; they are measured too, and predicted from each other."""
    repeats: PositiveInt
    devices: dict[str, str]
    """Short name, for placements, to name of a profile."""
    placements: dict[str, dict[str, str]]
    """Role, or ``all`` for those not named, to device."""
    sizes: dict[Role, Size] = {}
    settings: dict[str, dict[str, str]] = {}
    cases: list[CaseSpec]
    quick: Selection = Selection()

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for name, roles in self.placements.items():
            if "all" not in roles:
                raise ValueError(f"placements.{name} has no device for all other roles")
            for role, device in roles.items():
                if role != "all" and role not in list(Role):
                    raise ValueError(f"placements.{name} names the unknown role {role!r}")
                if device not in self.devices:
                    raise ValueError(f"placements.{name}.{role} names the unknown device {device!r}")
        named = [*self.recorded, *self.quick.placements, *(p for case in self.cases for p in case.placements)]
        if unknown := set(named) - self.placements.keys():
            raise ValueError(f"unknown placements {', '.join(sorted(unknown))}")
        return self

    @property
    def fingerprint(self) -> str:
        """Changes with anything that affects a run."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def expanded(self) -> list[Case]:
        """Every case, in the order of the file."""
        return [
            self._case(case, engine, clients)
            for case in self.cases
            for engine in case.engines
            for clients in case.clients
        ]

    def question_of(self, placement: str) -> dict[str, str]:
        """A placement in the words of a question to a recording."""
        return {role: self.devices[device] for role, device in self.placements[placement].items()}

    def _case(self, case: CaseSpec, engine: str, clients: int) -> Case:
        own = f"-{clients}" if len(case.clients) > 1 or clients > 1 else ""
        name = f"{case.workload}-{engine}{own}"
        names = list(dict.fromkeys([*self.recorded, *case.placements]))
        placements = {one: self._placement(one) for one in names}
        used = {device for one in names for device in self.placements[one].values()}
        merged = {**self.settings.get(engine, {}), **case.settings.get(engine, {})}
        study = Study(
            name=name,
            question="How far are predictions from measurements?",
            engines=[engine],
            workload=case.workload,
            scale=case.scale,
            constants=case.constants,
            clients=clients,
            seconds=case.seconds,
            warmup_transactions=case.warmup_transactions,
            caches=case.caches,
            waits=False,
            cap_s=case.cap_s,
            memory=case.memory,
            repeats=self.repeats,
            baseline=self.recorded[0],
            devices={one: DeviceSpec(profile=self.devices[one]) for one in self.devices if one in used},
            placements=placements,
            sizes={**self.sizes, **case.sizes},
            settings={engine: merged} if merged else {},
        )
        return Case(name=name, workload=case.workload, spec=case, study=study)

    def _placement(self, name: str) -> Placement:
        roles = self.placements[name]
        placed = {Role(role): device for role, device in roles.items() if role != "all"}
        return Placement(name=name, roles=placed, default=roles["all"])


def load(file: Path | None = None) -> ValidationSpec:
    """Read a validation; the one that ships with tierwise if no file is given.

    Raises:
        TierwiseError: naming the file and field.
    """
    name = SHIPPED if file is None else str(file)
    try:
        text = _shipped() if file is None else file.read_text("utf-8")
        return ValidationSpec.model_validate(tomllib.loads(text))
    except OSError as error:
        raise TierwiseError(f"{name}: {error.strerror}", "name a readable file") from error
    except tomllib.TOMLDecodeError as error:
        raise TierwiseError(f"{name}: {error}", "mend the TOML") from error
    except ValidationError as error:
        raise TierwiseError(f"{name}: {'; '.join(_said(error))}", "mend that field") from error


def chosen(cases: list[Case], names: list[str]) -> list[Case]:
    """Cases by their names, or by the beginning of them.

    Raises:
        TierwiseError: if there is no such case.
    """
    for name in names:
        if not any(_fits(case, name) for case in cases):
            fix = f"{one_of(name, [case.name for case in cases])}, or the beginning of one"
            raise TierwiseError(f"no case {name!r}", fix)
    return [case for case in cases if not names or any(_fits(case, name) for name in names)]


def _fits(case: Case, name: str) -> bool:
    return case.name == name or case.name.startswith(f"{name}-")


def _said(error: ValidationError) -> Iterator[str]:
    for one in error.errors()[:1]:
        field = ".".join(str(part) for part in one["loc"])
        yield f"{field}: {one['msg']}" if field else str(one["msg"])


def _shipped() -> Any:
    return (resources.files("tierwise") / "data" / SHIPPED).read_text("utf-8")
