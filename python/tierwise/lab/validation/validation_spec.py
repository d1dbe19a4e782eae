"""The specification of a validation: cases, devices and placements to record, to predict and to measure."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, StringConstraints, model_validator

from tierwise.lab.studies.study import Caches, Clients, Repeats, Seconds, Size
from tierwise.model.input_files import DATA, parse_as_model, parse_toml, read_text
from tierwise.model.names import FileName
from tierwise.model.placement import Role
from tierwise.model.units import parse_size_bytes
from tierwise.predict.model_error import Storage
from tierwise.results.measurements import StrictModel

SHIPPED = "validation.toml"
SET = "set"
"""Key of a placement for settings, separated by spaces."""
MEMORY, BUFFER = "memory", "buffer"
"""Keys of a placement for sizes of memory, and of the engine's own buffer."""
OWN = "own"
"""Name for the machine's own storage, in place of a profile."""
_MOST_DIFFERENT_CLIENTS = 64

RelationName = Annotated[str, StringConstraints(pattern=r"^(table|index):\w+\.\w+$")]
ServerName = Literal["postgres", "mariadb"]
LoadKind = Literal["writes", "mixed", "reads", "think time", "arrivals", "contention", "job"]


class CaseSpec(StrictModel):
    """A client program on a database, with one or more numbers of clients."""

    name: FileName | None = None
    """Replaces the name built from client and engine."""
    client: str
    """A program of ``validation/clients``."""
    server: ServerName | None = None
    """Not given for a client that is the database itself."""
    options: dict[str, str | int | float] = {}
    """Options of the client."""
    load: LoadKind
    """Kind of load, by which the page groups errors."""
    clients: list[Clients] = Field(default=[1], min_length=1, max_length=_MOST_DIFFERENT_CLIENTS)
    slot_s: Seconds | None = None
    """Length of a slot; replaces the file's."""
    recorded_s: Seconds | None = None
    most_blocks: Repeats | None = None
    duty: float = Field(default=0.2, gt=0, le=1)
    """Share of a mix that is recorded; a job is recorded whole."""
    caches: Caches = "warm"
    """``cold``: each slot begins with empty caches of the files."""
    memory: Size | None = None
    """Most memory of each server, its page cache included, which begins empty; warm up for long enough."""
    warm_up_s: Seconds | None = None
    recorded: list[str] = Field(min_length=1)
    """Placements under which the case is recorded; they are measured too."""
    placements: list[str] = []
    """Placements that are predicted and measured, besides those that are recorded."""
    held_back: bool = False
    """Whether only a prospective round runs it."""
    sizes: dict[Role, Size] = {}
    settings: dict[str, str] = {}
    binary_log: bool = False
    """Whether MariaDB writes a binary log, with the data."""
    selected: list[RelationName] = []
    """Tables and indexes in the place of the role ``selected``, such as ``table:public.orders``."""

    @model_validator(mode="after")
    def _fits_its_server(self) -> Self:
        if self.server is None and self.memory is not None:
            raise ValueError(f"memory limits a server, and client {self.client} has none")
        if self.selected and self.server is None:
            raise ValueError("selected tables have a place of their own in a server only")
        if self.server == "mariadb" and any(name.startswith("index:") for name in self.selected):
            raise ValueError("an index of MariaDB is in the file of its table: select tables")
        if self.server != "mariadb" and self.binary_log:
            raise ValueError("binary_log is of server mariadb")
        return self


class ValidationSpec(StrictModel):
    """The whole of a validation."""

    slot_s: Seconds = 5.0
    """Time for which the client runs against one placement."""
    fewest_blocks: Annotated[Repeats, Field(ge=2)] = 4
    most_blocks: Repeats = 20
    blocks_up: Repeats = 3
    """Blocks after which all placements are brought up anew: each bring-up has an effect of its own."""
    half_width: PositiveFloat = 0.03
    """A case ends when the 95 % interval of each ratio is no wider than this to either side, as a share."""
    recordings: Repeats = 1
    """Number of recordings under each recorded placement."""
    recorded_s: Seconds = 20.0
    """Length of a recorded mix."""
    warm_up_s: Seconds = 3.0
    devices: dict[str, str]
    """Short name, for placements, to name of a profile, or ``own`` for the machine's own storage."""
    placements: dict[str, dict[str, str]]
    """Role -> device; ``all`` for roles not named; ``set`` for settings: ``synchronous_commit=off``;
    ``memory`` of the server with its page cache, and ``buffer`` of the engine: ``256M``."""
    sizes: dict[Role, Size] = {}
    settings: dict[ServerName, dict[str, str]] = {}
    """Settings of servers."""
    cases: list[CaseSpec] = Field(min_length=1)
    quick: list[str] = []
    """Cases of ``--quick``: names, or prefixes of names."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for name, roles in self.placements.items():
            for key in (MEMORY, BUFFER):
                self.memory_bytes_of(name, key)
            if "all" not in roles:
                raise ValueError(f"placements.{name} has no device for all other roles")
            for role, device in self.devices_of(name).items():
                if role != "all" and role not in list(Role):
                    raise ValueError(f"placements.{name} names the unknown role {role!r}")
                if device not in self.devices:
                    raise ValueError(f"placements.{name}.{role} names the unknown device {device!r}")
            for setting in self.settings_of(name):
                if "=" not in setting:
                    raise ValueError(f"placements.{name}.set: {setting!r} is not NAME=VALUE")
        named = {place for case in self.cases for place in (*case.recorded, *case.placements)}
        if unknown := named - self.placements.keys():
            raise ValueError(f"unknown placements {', '.join(sorted(unknown))}")
        return self

    @property
    def fingerprint(self) -> str:
        """Hash of everything that affects a measurement."""
        return hashlib.sha256(self.model_dump_json(exclude={"quick"}).encode()).hexdigest()[:16]

    def devices_of(self, placement: str) -> dict[str, str]:
        """Role -> device of a placement, without its settings and sizes."""
        others = (SET, MEMORY, BUFFER)
        return {role: device for role, device in self.placements[placement].items() if role not in others}

    def memory_bytes_of(self, placement: str, key: str = MEMORY) -> int | None:
        """Size of the memory, or with :data:`BUFFER` of the engine's own; ``None`` if it is the case's."""
        size = self.placements[placement].get(key)
        return None if size is None else parse_size_bytes(size, f"placements.{placement}.{key}")

    def settings_of(self, placement: str) -> list[str]:
        """Settings in which a placement differs from the case's, such as ``synchronous_commit=off``."""
        return self.placements[placement].get(SET, "").split()

    def scenario_of(self, placement: str, own_profile: str) -> dict[str, str]:
        """A placement in a scenario's notation; ``own_profile`` replaces own storage."""
        named = {role: self.devices[device] for role, device in self.devices_of(placement).items()}
        return {role: own_profile if device == OWN else device for role, device in named.items()}

    def kind_of(self, placement: str) -> Storage:
        """``real`` if the placement uses the machine's own storage, else ``emulated``."""
        used = {self.devices[device] for device in self.devices_of(placement).values()}
        return "real" if OWN in used else "emulated"


def load_validation(file: Path | None = None) -> ValidationSpec:
    """Read a validation; the one that ships with tierwise if no file is given."""
    name = SHIPPED if file is None else str(file)
    text = (DATA / SHIPPED).read_text("utf-8") if file is None else read_text(file, "name a readable file")
    return parse_as_model(ValidationSpec, parse_toml(text, name), name, "mend that field")
