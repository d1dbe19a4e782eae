"""The specification of a validation: cases, devices and placements to record and to predict."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from tierwise.model.errors import TierwiseError
from tierwise.model.file_names import FileName
from tierwise.model.input_files import parse_toml, read_text
from tierwise.model.roles import Role
from tierwise.model.shipped import DATA
from tierwise.predict.model_error import Storage
from tierwise.results.measurements import Record
from tierwise.studies.spec import Caches, Size

SHIPPED = "validation.toml"
OWN = "own"
"""Name for the machine's own storage, in place of a profile."""
_MOST_DIFFERENT_CLIENTS = 64


class Control(Record):
    """The fixed workload before and after each run, and when a run is rejected; declared before a round."""

    cpu_s: PositiveFloat = 1.0
    """Length of the loop on each core."""
    sync_s: PositiveFloat = 1.0
    """Length of the loop of small synchronous writes on the storage of the run."""
    cpu_slower: PositiveFloat = 0.08
    """Maximum shortfall of a CPU reading below the round's median, as a share; else the run is repeated."""
    sync_slower: PositiveFloat = 0.3
    """Maximum shortfall of a reading of the writes, as a share."""
    late_share: PositiveFloat = 0.02
    """Deadline overrun of an emulated disk, as a share of the run, beyond which the run is repeated."""
    fewest: PositiveInt = 5
    """Minimum number of control readings for a median."""
    attempts: PositiveInt = 3
    """Maximum number of attempts at one run."""


class Selection(Record):
    """A smaller validation: some of the cases, with shorter runs and fewer blocks."""

    cases: list[str] = []
    """Names of cases, or prefixes of names; all if none are given."""
    repeats: PositiveInt = 1
    seconds: PositiveFloat | None = None
    recorded_seconds: PositiveFloat | None = None


class CaseSpec(Record):
    """A client or a tierwise workload, with one or more numbers of clients."""

    name: FileName | None = None
    """Replaces the name built from client, server and options."""
    client: str | None = None
    """A program of ``validation/clients``."""
    server: str | None = None
    """``postgres`` or ``mariadb``; not given for a client that is the database itself."""
    options: dict[str, str | int | float] = {}
    """Options of the client."""
    workload: str | None = None
    """A tierwise workload, in place of a client."""
    engine: str | None = None
    """Engine of a workload."""
    clients: list[PositiveInt] = Field(default=[1], max_length=_MOST_DIFFERENT_CLIENTS)
    scale: PositiveFloat = 1.0
    constants: dict[str, float] = {}
    seconds: PositiveFloat | None = None
    """Length of a mix; replaces the file's."""
    recorded_seconds: PositiveFloat | None = None
    duty: float = Field(default=0.4, gt=0, le=1)
    """Share of a mix that is recorded; laps are recorded whole."""
    warmup_transactions: int = 0
    caches: Caches = "warm"
    memory: Size | None = None
    """Most memory of the server, its page cache included, which begins empty; warm up for long enough."""
    recorded: list[str] = Field(min_length=1)
    """Placements under which the case is recorded; they are measured too."""
    placements: list[str] = []
    """Placements that are predicted and measured, besides those that are recorded."""
    each_round: PositiveInt | None = None
    """Number of ``placements`` per round; the next round takes the next ones. All if not given."""
    sizes: dict[Role, Size] = {}
    settings: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if (self.client is None) == (self.workload is None):
            raise ValueError("give either a client or a workload")
        if self.workload is not None and self.engine is None:
            raise ValueError(f"workload {self.workload} needs an engine")
        if self.client is not None and self.server is None and self.memory is not None:
            raise ValueError(f"memory limits a server, and client {self.client} has none")
        return self


class ValidationSpec(Record):
    """The whole of a validation."""

    repeats: PositiveInt
    """Number of blocks; each case runs, and is recorded, once in each."""
    seconds: PositiveFloat = 30.0
    """Length of a measured mix."""
    recorded_seconds: PositiveFloat = 12.0
    """Length of a recorded mix."""
    warm_up_s: PositiveFloat = 3.0
    shortest_lap_s: PositiveFloat = 5.0
    """Minimum length of a lap; a shorter one is reported as inconclusive."""
    control: Control = Control()
    devices: dict[str, str]
    """Short name, for placements, to name of a profile, or ``own`` for the machine's own storage."""
    placements: dict[str, dict[str, str]]
    """Role -> device; ``all`` for roles not named."""
    sizes: dict[Role, Size] = {}
    settings: dict[str, dict[str, str]] = {}
    """Settings of servers and engines, by name."""
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
        named = {place for case in self.cases for place in (*case.recorded, *case.placements)}
        if unknown := named - self.placements.keys():
            raise ValueError(f"unknown placements {', '.join(sorted(unknown))}")
        return self

    @property
    def fingerprint(self) -> str:
        """Hash of everything that affects a run."""
        return hashlib.sha256(self.model_dump_json(exclude={"quick"}).encode()).hexdigest()[:16]

    def scenario_of(self, placement: str, own_profile: str) -> dict[str, str]:
        """A placement in a scenario's notation; ``own_profile`` replaces own storage."""
        named = {role: self.devices[device] for role, device in self.placements[placement].items()}
        return {role: own_profile if device == OWN else device for role, device in named.items()}

    def kind_of(self, placement: str) -> Storage:
        """``real`` if the placement uses the machine's own storage, else ``emulated``."""
        used = {self.devices[device] for device in self.placements[placement].values()}
        return "real" if OWN in used else "emulated"

    def selected(self) -> ValidationSpec:
        """The validation with the lengths and blocks of ``quick``."""
        quick = self.quick
        changed = {
            "repeats": quick.repeats,
            "seconds": quick.seconds or self.seconds,
            "recorded_seconds": quick.recorded_seconds or self.recorded_seconds,
        }
        return self.model_copy(update=changed)


def load(file: Path | None = None) -> ValidationSpec:
    """Read a validation; the one that ships with tierwise if no file is given.

    Raises:
        TierwiseError: naming the file and field.
    """
    name = SHIPPED if file is None else str(file)
    text = _shipped() if file is None else read_text(file, "name a readable file")
    try:
        return ValidationSpec.model_validate(parse_toml(text, name))
    except ValidationError as error:
        raise TierwiseError(f"{name}: {'; '.join(_said(error))}", "mend that field") from error


def placements_of(case: CaseSpec, rotation: int) -> Sequence[str]:
    """Placements of a case in one round: the recorded ones, then the round's share of the others."""
    others = [place for place in case.placements if place not in case.recorded]
    if case.each_round is not None and case.each_round < len(others):
        start = rotation * case.each_round
        others = [others[(start + index) % len(others)] for index in range(case.each_round)]
    return [*case.recorded, *others]


def _said(error: ValidationError) -> Iterator[str]:
    for one in error.errors()[:1]:
        field = ".".join(str(part) for part in one["loc"])
        yield f"{field}: {one['msg']}" if field else str(one["msg"])


def _shipped() -> str:
    return (DATA / SHIPPED).read_text("utf-8")
