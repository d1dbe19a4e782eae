"""The fields of a study."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    WithJsonSchema,
    field_validator,
)

from tierwise.model.errors import TierwiseError
from tierwise.model.names import FileName, names_in
from tierwise.model.placement import DeviceSpec, Placement, Role
from tierwise.model.units import parse_size_bytes
from tierwise.results import PaperValue

_GIB = 1 << 30
_DEFAULT_SIZES = {Role.LOG: 2 * _GIB, Role.DATA: 2 * _GIB}
_OTHER_SIZE_BYTES = _GIB


def _size(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_size_bytes(value, "size")
    except TierwiseError as error:
        raise ValueError(str(error)) from error


_SIZE_SCHEMA = {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "string"}]}
Size = Annotated[PositiveInt, BeforeValidator(_size), WithJsonSchema(_SIZE_SCHEMA)]
"""Bytes, or a text such as ``256M``."""


def _names(value: object) -> object:
    return names_in(value) if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_names)]
"""A list of names, or a text with commas."""

DeviceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,15}$")]
"""Part of the name of the emulated disk, which must be short."""

Caches = Literal["cold", "warm"]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Sweep(_Spec):
    """Settings that are given one value after the other, least resources first.

    ``full`` runs every combination; ``one-at-a-time`` varies each setting while all others keep their first
    value.
    """

    memory: list[str] = []
    parallelism: list[PositiveInt] = []
    clients: list[PositiveInt] = []
    constants: dict[str, list[float]] = {}
    variant: list[str] = []
    """Names of the study's variants."""
    dying: list[Role] = []
    """Roles whose device dies; a study of deaths fills it with all roles of its engine."""
    design: Literal["full", "one-at-a-time"] = "full"

    @field_validator("memory")
    @classmethod
    def _sizes(cls, memory: list[str]) -> list[str]:
        for text in memory:
            _size(text)
        return memory

    @field_validator("memory", "parallelism", "clients")
    @classmethod
    def _rising(cls, values: list[Any]) -> list[Any]:
        numbers = [_size(value) for value in values]
        if not all(one < next_one for one, next_one in pairwise(numbers)):  # type: ignore[operator]
            raise ValueError("write the values in rising order, each once")
        return values


class Overrides(_Spec):
    """What a variant, ``[quick]`` or ``[paper_scale]`` has in place of the study's own; tables are merged."""

    workload: str | None = None
    scale: PositiveFloat | None = None
    clients: PositiveInt | None = None
    transactions: PositiveInt | None = None
    seconds: PositiveFloat | None = None
    warmup_transactions: int | None = Field(default=None, ge=0)
    caches: Caches | None = None
    cap_s: PositiveFloat | None = None
    memory: Size | None = None
    parallelism: PositiveInt | None = None
    repeats: PositiveInt | None = None
    cuts: PositiveInt | None = None
    deaths: PositiveInt | None = None
    durability: Names | None = None
    dying: Names | None = None
    placements: list[str] | None = None
    """Placements of the study to run."""
    sweep: Sweep | None = None
    constants: dict[str, float] = {}
    sizes: dict[Role, Size] = {}
    settings: dict[str, dict[str, str]] = {}
    estimate_s: PositiveFloat | None = None


class Study(_Spec):
    """A question, as data: engine × workload × placements × settings × repeats, and what a paper found.

    ``sizes`` gives each role's partition of an emulated device; memory is used only for what is written.
    ``patterns`` names access patterns that are run on a file, one after the other in ``seconds`` together, in
    place of a database: a study of devices, whose engine is called ``file``.
    ``cuts`` makes it a study of power cuts: so many for each placement and durability setting, over all
    repeats together, each at a random moment of at most ``seconds`` of commits. ``deaths`` makes it a study
    of the deaths of devices in the same way: so many for each placement and role.
    With ``caches`` cold, the server is restarted and the page cache dropped before the warm-up; warm, both
    are as loading left them. Neither ``transactions`` nor ``seconds`` is given for a workload of laps.
    """

    name: FileName
    question: str
    source: str | None = None
    """The paper and its part that the study reproduces."""
    engines: list[str] = Field(min_length=1)
    """The first is the default."""
    workload: str
    scale: PositiveFloat = 1.0
    constants: dict[str, float] = {}
    clients: PositiveInt = 1
    transactions: PositiveInt | None = None
    seconds: PositiveFloat | None = None
    patterns: list[str] = []
    cuts: PositiveInt | None = None
    durability: Names = []
    """Names of the engine's durability settings to cut under; all if empty."""
    deaths: PositiveInt | None = None
    dying: Names = []
    """Roles whose device dies, one after the other; all of the engine if empty."""
    warmup_transactions: int = Field(default=0, ge=0)
    caches: Caches = "cold"
    waits: bool = True
    """Whether sessions' waits are sampled, which takes CPU time and reads catalogues."""
    cap_s: PositiveFloat | None = None
    """A lap is stopped after this time, and the run continues with the next."""
    memory: Size | None = None
    """Limit for the memory of the engine's processes together, page cache included."""
    parallelism: PositiveInt | None = None
    repeats: PositiveInt
    baseline: str
    devices: dict[DeviceName, DeviceSpec]
    placements: dict[FileName, Placement]
    sizes: dict[Role, Size] = {}
    settings: dict[str, dict[str, str]] = {}
    sweep: Sweep = Sweep()
    variants: dict[FileName, Overrides] = {}
    quick: Overrides = Overrides()
    paper_scale: Overrides = Overrides()
    estimate_s: PositiveFloat | None = None
    """Approximate time of the whole study at its default scale, on two processors."""
    notes: list[str] = []
    paper: list[PaperValue] = []

    def size_bytes(self, role: Role) -> int:
        """Size of the partition for ``role``."""
        return self.sizes.get(role, _DEFAULT_SIZES.get(role, _OTHER_SIZE_BYTES))

    def fingerprint(self) -> str:
        """Hash of everything that affects the runs; a study resumes only under the same fingerprint."""
        words = {"question", "source", "notes", "paper", "repeats", "quick", "paper_scale", "estimate_s"}
        return hashlib.sha256(self.model_dump_json(exclude=words).encode()).hexdigest()[:16]

    def with_overrides(self, overrides: Overrides) -> Self:
        """The study with its values replaced by those of ``overrides``."""
        given = {
            name: getattr(overrides, name)
            for name in overrides.model_fields_set - {"placements", "settings"}
            if getattr(overrides, name) is not None
        }
        for name in given.keys() & {"constants", "sizes"}:
            given[name] = {**getattr(self, name), **given[name]}
        if overrides.settings:
            engines = self.settings.keys() | overrides.settings.keys()
            given["settings"] = {
                engine: {**self.settings.get(engine, {}), **overrides.settings.get(engine, {})}
                for engine in sorted(engines)
            }
        for name, other in (("transactions", "seconds"), ("seconds", "transactions")):
            if name in given and other not in given:
                given[other] = None
        changed = self.model_copy(update=given)
        return changed if overrides.placements is None else changed.with_placements(overrides.placements)

    def with_placements(self, names: list[str]) -> Self:
        """The study with only these placements; without its own baseline, the first becomes the baseline.

        Raises:
            TierwiseError: if the study has no such placement.
        """
        for name in names:
            if name not in self.placements:
                raise TierwiseError(
                    f"study {self.name} has no placement {name!r}", f"use {', '.join(self.placements)}"
                )
        chosen = {name: one for name, one in self.placements.items() if name in names}
        baseline = self.baseline if self.baseline in chosen else next(iter(chosen))
        return self.model_copy(update={"placements": chosen, "baseline": baseline})

    def on_engine(self, name: str) -> Self:
        """The study with one engine, which it need not list."""
        return self.model_copy(update={"engines": [name]})

    def on_own_storage(self, directory: Path) -> Self:
        """The study with ``directory``, on the machine's own storage, in place of every device.

        A study of devices then has only this device.
        """
        own = {name: DeviceSpec(path=str(directory)) for name in self.devices}
        if not self.patterns:
            return self.model_copy(update={"devices": own})
        only = Placement(name="own-storage", default=self.placements[self.baseline].default)
        update = {"devices": own, "placements": {only.name: only}, "baseline": only.name}
        return self.model_copy(update=update)
