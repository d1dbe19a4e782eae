"""Studies: a question, as data."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from tierwise.errors import TierwiseError
from tierwise.placement import DeviceSpec, Placement
from tierwise.results import PaperValue
from tierwise.roles import Role
from tierwise.units import parse_size_bytes

FILE_ENGINE = "file"
"""Stands for no database: access patterns on a file."""
_GIB = 1 << 30
_DEFAULT_SIZES = {Role.LOG: 2 * _GIB, Role.DATA: 2 * _GIB}
_OTHER_SIZE_BYTES = _GIB


def _size(value: object) -> object:
    return parse_size_bytes(value, "size") if isinstance(value, str) else value


class Study(BaseModel):
    """Engines × workload × placements × repeats, and what a paper found.

    ``sizes`` gives each role's partition of an emulated device; memory is used only for what is written.
    ``patterns`` names access patterns that are run on a file, one after the other in ``seconds`` together, in
    place of a database: a study of devices, whose engine is called ``file``.
    With ``caches`` cold, the server is restarted and the page cache dropped before the warm-up; warm, both
    are as loading left them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    question: str
    engines: list[str] = Field(min_length=1)
    workload: str
    scale: PositiveFloat = 1.0
    clients: PositiveInt
    transactions: PositiveInt | None = None
    seconds: PositiveFloat | None = None
    patterns: list[str] = []
    warmup_transactions: int = Field(ge=0)
    caches: Literal["cold", "warm"] = "cold"
    repeats: PositiveInt
    baseline: str
    devices: dict[str, DeviceSpec]
    placements: dict[str, Placement]
    sizes: dict[Role, Annotated[PositiveInt, BeforeValidator(_size)]] = {}
    settings: dict[str, dict[str, str]] = {}
    notes: list[str] = []
    paper: list[PaperValue] = []

    def size_bytes(self, role: Role) -> int:
        """Size of the partition for ``role``."""
        return self.sizes.get(role, _DEFAULT_SIZES.get(role, _OTHER_SIZE_BYTES))

    def fingerprint(self) -> str:
        """Changes when anything that affects the runs changes; a study resumes only under the same one."""
        runs = self.model_dump_json(exclude={"question", "notes", "paper", "repeats"})
        return hashlib.sha256(runs.encode()).hexdigest()[:16]

    def on_own_storage(self, directory: Path) -> Study:
        """The same study with ``directory``, on the machine's own storage, in place of every device.

        A study of devices then has that one alone.
        """
        own = {name: DeviceSpec(path=str(directory)) for name in self.devices}
        if not self.patterns:
            return self.model_copy(update={"devices": own})
        only = Placement(name="own-storage", default=self.placements[self.baseline].default)
        update = {"devices": own, "placements": {only.name: only}, "baseline": only.name}
        return self.model_copy(update=update)


def names() -> list[str]:
    """Studies that ship with tierwise."""
    return sorted(
        file.name.removesuffix(".toml") for file in _shipped().iterdir() if file.name.endswith(".toml")
    )


def load(name_or_path: str) -> Study:
    """Read a study by the name of a shipped one, or by the path of a TOML file.

    Raises:
        TierwiseError: naming the file and field, if there is no such study or it is not valid.
    """
    given = Path(name_or_path)
    if given.suffix == ".toml":
        return parse(_read(given), str(given))
    if name_or_path not in names():
        raise TierwiseError(
            f"unknown study {name_or_path!r}", f"use one of {', '.join(names())}, or the path of a .toml file"
        )
    return parse((_shipped() / f"{name_or_path}.toml").read_text("utf-8"), f"{name_or_path}.toml")


def parse(text: str, file: str) -> Study:
    """Read a study from TOML.

    Raises:
        TierwiseError: naming ``file`` and the field.
    """
    try:
        raw = tomllib.loads(text)
        study = Study.model_validate(_with_names(raw))
    except tomllib.TOMLDecodeError as error:
        raise TierwiseError(f"{file}: {error}", "mend the TOML") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise TierwiseError(f"{file}: {field}: {first['msg']}", "mend that field") from error
    _require_consistent(study, file)
    return study


def _with_names(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Placements are written ``[placements.NAME] log = "ssd"``: roles beside the default, no nesting."""
    placements = {
        name: {
            "name": name,
            "default": body.get("default"),
            "roles": {role: device for role, device in body.items() if role != "default"},
        }
        for name, body in raw.get("placements", {}).items()
    }
    return {**raw, "placements": placements}


def _require_consistent(study: Study, file: str) -> None:
    for placement in study.placements.values():
        placement.require_known(study.devices, file)
    named = {"baseline": study.baseline} | {f"paper.{i}": f.placement for i, f in enumerate(study.paper)}
    for field, placement_name in named.items():
        if placement_name not in study.placements:
            raise TierwiseError(
                f"{file}: {field} names the unknown placement {placement_name!r}",
                f"use one of {', '.join(study.placements)}",
            )
    if (study.transactions is None) == (study.seconds is None):
        raise TierwiseError(f"{file}: transactions and seconds", "give one of the two")
    if bool(study.patterns) != (study.engines == [FILE_ENGINE]):
        raise TierwiseError(
            f'{file}: engines and patterns: patterns run on the engine "{FILE_ENGINE}" and on no other',
            f'write engines = ["{FILE_ENGINE}"] with patterns, or another engine without',
        )
    if study.patterns and study.seconds is None:
        raise TierwiseError(
            f"{file}: seconds: patterns run for a time", "give seconds in place of transactions"
        )
    for name, device in study.devices.items():
        if (device.profile is None) == (device.path is None):
            raise TierwiseError(f"{file}: devices.{name}", "give either profile or path")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "name a readable study file") from error


def _shipped() -> Any:
    return resources.files("tierwise") / "studies"
