"""Studies: their fields, read from files and checked for contradictions; their runs in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    WithJsonSchema,
    field_validator,
)

from tierwise.lab import engines
from tierwise.lab.workloads.workload_spec import MOST_CLIENTS
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, parse_as_model, parse_toml, read_text
from tierwise.model.names import FileName, split_names, unknown_name_fix
from tierwise.model.placement import DeviceSpec, Placement, Role
from tierwise.model.units import GIB, parse_size_bytes
from tierwise.results import PaperValue

_DEFAULT_SIZES = {Role.LOG: 2 * GIB, Role.DATA: 2 * GIB}
_OTHER_SIZE_BYTES = GIB
_LARGEST_BYTES = 1 << 60


def _size(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        size_bytes = parse_size_bytes(value, "size")
    except TierwiseError as error:
        raise ValueError(str(error)) from error
    if size_bytes > _LARGEST_BYTES:
        raise ValueError(f"{value} is above {_LARGEST_BYTES >> 40}T")
    return size_bytes


_SIZE_SCHEMA = {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "string"}]}
Size = Annotated[int, Field(gt=0, le=_LARGEST_BYTES), BeforeValidator(_size), WithJsonSchema(_SIZE_SCHEMA)]
"""Bytes, or a text such as ``256M``."""

_MOST_RUNS = 100_000
_MOST_COUNT = 10**15
Clients = Annotated[int, Field(ge=1, le=MOST_CLIENTS)]
Count = Annotated[int, Field(ge=1, le=_MOST_COUNT)]
Parallelism = Annotated[int, Field(ge=1, le=1024)]
Repeats = Annotated[int, Field(ge=1, le=_MOST_RUNS)]
Seconds = Annotated[float, Field(gt=0, le=1e9)]


def _names(value: object) -> object:
    return split_names(value) if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_names)]
"""A list of names, or a text with commas."""

DeviceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,15}$")]
"""Part of the name of the emulated disk, which must be short."""

Caches = Literal["cold", "warm"]


class _Spec(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True, use_attribute_docstrings=True)


class Sweep(_Spec):
    """Settings that are given one value after the other, least resources first.

    ``full`` runs every combination; ``one-at-a-time`` varies each setting while all others keep their first
    value.
    """

    memory: list[str] = []
    parallelism: list[Parallelism] = []
    clients: list[Clients] = []
    constants: dict[str, list[float]] = {}
    variant: list[str] = []
    """Names of the study's variants."""
    dying: list[Role] = []
    """Roles whose device dies; a study of deaths fills it with all roles of its engine."""
    design: Literal["full", "one-at-a-time"] = "full"

    @field_validator("memory", "parallelism", "clients")
    @classmethod
    def _rising(cls, values: list[Any]) -> list[Any]:
        numbers = [_size(value) for value in values]
        if not all(number < next_one for number, next_one in pairwise(numbers)):  # type: ignore[operator]
            raise ValueError("write the values in rising order, each once")
        return values


class Overrides(_Spec):
    """What a variant, ``[quick]`` or ``[paper_scale]`` has in place of the study's own; tables are merged."""

    workload: str | None = None
    scale: PositiveFloat | None = None
    clients: Clients | None = None
    transactions: Count | None = None
    seconds: Seconds | None = None
    warmup_transactions: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    caches: Caches | None = None
    cap_s: Seconds | None = None
    memory: Size | None = None
    parallelism: Parallelism | None = None
    repeats: Repeats | None = None
    cuts: Repeats | None = None
    deaths: Repeats | None = None
    durability: Names | None = None
    dying: Names | None = None
    placements: Annotated[list[str], Field(min_length=1)] | None = None
    """Placements of the study to run."""
    sweep: Sweep | None = None
    constants: dict[str, float] = {}
    sizes: dict[Role, Size] = {}
    settings: dict[str, dict[str, str]] = {}
    estimate_s: Seconds | None = None


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
    clients: Clients = 1
    transactions: Count | None = None
    seconds: Seconds | None = None
    patterns: list[str] = []
    cuts: Repeats | None = None
    durability: Names = []
    """Names of the engine's durability settings to cut under; all if empty."""
    deaths: Repeats | None = None
    dying: Names = []
    """Roles whose device dies, one after the other; all of the engine if empty."""
    warmup_transactions: int = Field(default=0, ge=0, le=_MOST_COUNT)
    caches: Caches = "cold"
    waits: bool = True
    """Whether sessions' waits are sampled, which takes CPU time and reads catalogues."""
    cap_s: Seconds | None = None
    """A lap is stopped after this time, and the run continues with the next."""
    memory: Size | None = None
    """Limit for the memory of the engine's processes together, page cache included."""
    parallelism: Parallelism | None = None
    repeats: Repeats
    baseline: str
    devices: dict[DeviceName, DeviceSpec]
    placements: dict[FileName, Placement]
    sizes: dict[Role, Size] = {}
    settings: dict[str, dict[str, str]] = {}
    sweep: Sweep = Sweep()
    variants: dict[FileName, Overrides] = {}
    quick: Overrides = Overrides()
    paper_scale: Overrides = Overrides()
    estimate_s: Seconds | None = None
    """Approximate time of the whole study at its default scale, on two processors."""
    notes: list[str] = []
    paper: list[PaperValue] = []

    def settings_of(self, engine: str) -> dict[str, str]:
        """Settings for an engine; an installed one takes the packaged one's, and its own before them."""
        return _settings_of(self.settings, engine)

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
        if overrides.sweep is not None:  # in place of the study's own values
            given |= {
                name: Study.model_fields[name].default for name in _swept(overrides.sweep) - given.keys()
            }
            replaced = overrides.sweep.constants.keys() - overrides.constants.keys()
            constants = given.get("constants", self.constants)
            given["constants"] = {name: each for name, each in constants.items() if name not in replaced}
        if overrides.settings:
            engines = self.settings.keys() | overrides.settings.keys()
            given["settings"] = {
                engine: {**self.settings.get(engine, {}), **_settings_of(overrides.settings, engine)}
                for engine in sorted(engines)
            }
        for name, other in (("transactions", "seconds"), ("seconds", "transactions")):
            if name in given and other not in given:
                given[other] = None
        changed = self.model_copy(update=given)
        return changed if overrides.placements is None else changed.with_placements(overrides.placements)

    def with_placements(self, names: list[str]) -> Self:
        """The study with only these placements; without its own baseline, the first becomes the baseline."""
        for name in names:
            if name not in self.placements:
                raise TierwiseError(
                    f"study {self.name} has no placement {name!r}", f"use {', '.join(self.placements)}"
                )
        chosen = {name: placement for name, placement in self.placements.items() if name in names}
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


def _settings_of(settings: Mapping[str, dict[str, str]], engine: str) -> dict[str, str]:
    return {**settings.get(engines.engine_family(engine), {}), **settings.get(engine, {})}


_SHIPPED = DATA / "studies"
FILE_ENGINE = "file"
"""Engine name of studies without a database: access patterns on a file."""


def study_names() -> list[str]:
    """Studies that ship with tierwise."""
    return sorted(file.stem for file in _SHIPPED.glob("*.toml"))


def load_study(name_or_path: str) -> Study:
    """Read a study by the name of one that ships with tierwise, or by the path of a TOML file."""
    given = Path(name_or_path)
    if given.suffix == ".toml":
        return parse_study(read_text(given, "name a readable study file"), str(given))
    if name_or_path not in study_names():
        fix = f"{unknown_name_fix(name_or_path, study_names())}, or the path of a .toml file"
        raise TierwiseError(f"unknown study {name_or_path!r}", fix)
    return parse_study((_SHIPPED / f"{name_or_path}.toml").read_text("utf-8"), f"{name_or_path}.toml")


def parse_study(text: str, file: str) -> Study:
    """Read a study from TOML."""
    # As JSON, where names of roles are texts, `true` is no number and "10" neither.
    content = json.dumps(_with_names(parse_toml(text, file)), default=str)
    study = parse_as_model(Study, content, file, "mend that field", strict=True)
    for placement in study.placements.values():
        placement.require_known(study.devices, file)
    for problem, fix in _unknown_names(study):
        raise TierwiseError(f"{file}: {problem}", fix)
    require_consistent(study, file)
    for part, overrides in (("quick", study.quick), ("paper_scale", study.paper_scale)):
        require_consistent(study.with_overrides(overrides), f"{file}: {part}")
    for problem, fix in _unused_variants(study):
        raise TierwiseError(f"{file}: {problem}", fix)
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


def require_consistent(study: Study, where: str) -> None:
    """Refuse fields that contradict each other, or that the runs would not heed."""
    for problem, fix in (*_contradictions(study), *_given_twice(study), *_unheeded(study), *_ignored(study)):
        raise TierwiseError(f"{where}: {problem}", fix)


def _unknown_names(study: Study) -> Iterator[tuple[str, str]]:
    """Names of placements and swept settings that the study does not define."""
    placements = {"baseline": study.baseline} | {f"paper.{i}": f.placement for i, f in enumerate(study.paper)}
    for part, overrides in (("quick", study.quick), ("paper_scale", study.paper_scale)):
        placements |= {f"{part}.placements.{name}": name for name in overrides.placements or ()}
    for place, name in placements.items():
        if name not in study.placements:
            yield (
                f"{place} names the unknown placement {name!r}",
                f"use one of {', '.join(study.placements)}",
            )
    swept = swept_values(study.sweep)
    for number, figure in enumerate(study.paper):
        for name in figure.setting.keys() - swept.keys():
            known = ", ".join(swept) or "none"
            yield f"paper.{number}.setting names {name!r}, which is not swept", f"use one of these: {known}"


def _unused_variants(study: Study) -> Iterator[tuple[str, str]]:
    """Variants that no run has."""
    sweeps = [study.sweep, *(part.sweep for part in (study.quick, study.paper_scale) if part.sweep)]
    for name in study.variants.keys() - {name for sweep in sweeps for name in sweep.variant}:
        yield f"variants.{name}: no sweep runs it", "name it in sweep.variant, or leave it out"


_OF_A_WHOLE_STUDY = ("sweep", "placements", "repeats", "cuts", "deaths", "durability", "dying", "estimate_s")


_OF_A_DATABASE = ("memory", "parallelism", "cap_s", "warmup_transactions", "constants")
"""Fields that only a workload on a database heeds."""


_SWEPT = ("memory", "parallelism", "clients")


def _swept(sweep: Sweep) -> set[str]:
    """Fields of a study that a sweep gives one value after the other."""
    return {name for name in _SWEPT if getattr(sweep, name)}


def _given_twice(study: Study) -> Iterator[tuple[str, str]]:
    """Values that a sweep gives as well."""
    places: dict[str, Study | Overrides] = {"": study}
    places |= {f"variants.{name}.": variant for name, variant in study.variants.items()}
    for place, given in places.items():
        unset = {name: (None, type(given).model_fields[name].default) for name in _swept(study.sweep)}
        names = [name for name in sorted(unset) if getattr(given, name) not in unset[name]]
        names += [CONSTANT + name for name in given.constants.keys() & study.sweep.constants.keys()]
        for name in names:
            yield f"{place}{name}: sweep.{name} gives its values", "leave one of the two out"


def _unheeded(study: Study) -> Iterator[tuple[str, str]]:
    """What no run would heed, and what would run twice under one name."""
    for name in study.sweep.variant:
        if name not in study.variants:
            known = ", ".join(study.variants) or "none"
            yield f"sweep.variant names {name!r}", f"define it under [variants] (there: {known})"
    for name, many in {**swept_values(study.sweep), **_constants(study.sweep)}.items():
        if not many or len(many) > len(set(many)):
            yield f"sweep.{name}: {', '.join(many) or 'no value'}", "write at least one value, and each once"
    for name, variant in study.variants.items():
        for field_name in _OF_A_WHOLE_STUDY:
            if getattr(variant, field_name) is not None:
                yield (
                    f"variants.{name}.{field_name}: it holds for a whole study",
                    "leave it out of the variant",
                )
    if study.deaths is None and (study.dying or study.sweep.dying):
        yield "dying: no device dies", "give deaths, or leave it out"
    if study.cuts is None and study.durability:
        yield "durability: no power is cut", "give cuts, or leave it out"
    parts = {"": study.settings} | {
        f"variants.{name}.": each.settings for name, each in study.variants.items()
    }
    for part, settings in parts.items():
        for name in settings.keys() - {*engines.engine_names()}:
            yield (
                f"{part}settings.{name}: there is no such engine",
                unknown_name_fix(name, engines.engine_names()),
            )


def _ignored(study: Study) -> Iterator[tuple[str, str]]:
    """Fields of a workload on a database, in a study that runs none."""
    if not study.patterns and study.cuts is None and study.deaths is None:
        return
    ignored = ("clients", *_OF_A_DATABASE) if study.patterns else _OF_A_DATABASE
    variants = {f"variants.{name}.": variant for name, variant in study.variants.items()}
    for place, given in {"": study, "sweep.": study.sweep, **variants}.items():
        for name in (name for name in ignored if name in type(given).model_fields):
            if getattr(given, name) not in (None, type(given).model_fields[name].default):
                yield f"{place}{name}: a study of devices or of faults does not heed it", "leave it out"


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
    runs = study.repeats * len(study.placements) * sweep_point_count(study.sweep)
    if runs > _MOST_RUNS:
        yield f"{runs:,} runs, above {_MOST_RUNS:,}", "lower repeats, or sweep fewer values"
    for name, device in study.devices.items():
        if bool(device.profile) == bool(device.path):
            yield f"devices.{name}", "give either profile or path"
        if device.lies_about_flush and device.profile is None:
            yield f"devices.{name}: lies_about_flush", "give it to an emulated device only"
        if device.failed_member and device.profile is None:
            yield f"devices.{name}: failed_member", "give it to an emulated array only"
        if faulty and device.path is not None:
            yield f"devices.{name}: a real device cannot be made to fail", "give a profile"


CONSTANT = "constants."
"""Prefix of a setting that is a constant of the workload."""

Setting = dict[str, str]
"""Value of each swept setting, as text; empty for a study without a sweep."""


def swept_values(sweep: Sweep) -> dict[str, list[str]]:
    """Settings that a study sweeps, each with its values as text, in the study's order."""
    factors: dict[str, list[str]] = {
        "memory": sweep.memory,
        "parallelism": [str(number) for number in sweep.parallelism],
        "clients": [str(client) for client in sweep.clients],
        "variant": sweep.variant,
        "dying": [str(role) for role in sweep.dying],
    }
    return {name: many for name, many in (factors | _constants(sweep)).items() if many}


def _constants(sweep: Sweep) -> dict[str, list[str]]:
    return {
        CONSTANT + name: [f"{constant:.15g}" for constant in many] for name, many in sweep.constants.items()
    }


def sweep_point_count(sweep: Sweep) -> int:
    """Number of points."""
    lengths = [len(many) for many in swept_values(sweep).values()]
    return prod(lengths) if sweep.design == "full" else 1 + sum(length - 1 for length in lengths)


def sweep_points(sweep: Sweep) -> list[Setting]:
    """Every point, in the study's order; a single empty one if nothing is swept."""
    factors = swept_values(sweep)
    if sweep.design == "full":
        return [dict(zip(factors, point, strict=True)) for point in product(*factors.values())]
    base = {name: many[0] for name, many in factors.items()}
    return [base, *({**base, name: value} for name, many in factors.items() for value in many[1:])]


def study_at_point(study: Study, setting: Mapping[str, str]) -> Study:
    """The study at one point."""
    variant = study.variants[setting["variant"]] if "variant" in setting else Overrides()
    varied = study.with_overrides(variant)
    constants = {
        name.removeprefix(CONSTANT): float(value)
        for name, value in setting.items()
        if name.startswith(CONSTANT)
    }
    given: dict[str, object] = {"constants": {**varied.constants, **constants}}
    if "memory" in setting:
        given["memory"] = parse_size_bytes(setting["memory"], "memory")
    given |= {name: int(setting[name]) for name in ("parallelism", "clients") if name in setting}
    return varied.model_copy(update=given)


@dataclass(frozen=True)
class RunPlan:
    """One planned run. ``order`` is its position in the study, counted from 0."""

    run_id: str
    engine: str
    placement: Placement
    repeat: int
    order: int
    seed: int
    setting: Setting = field(default_factory=dict)
    """The point of the study's sweep."""


def plan_runs(study: Study, seed: int) -> list[RunPlan]:
    """Every run of a study on its first engine: a randomised complete block design, one block a repeat.

    Within a block each placement runs once at each point of the sweep, in random order, so that slow drift of
    the machine falls on all of them alike. Every run of a block shares one workload seed.
    :func:`require_consistent` limits their number.
    """
    random = Random(seed)
    engine = study.engines[0]
    plans: list[RunPlan] = []
    for repeat in range(study.repeats):
        block = list(product(study.placements.values(), sweep_points(study.sweep)))
        random.shuffle(block)
        block_seed = random.getrandbits(32)
        for placement, setting in block:
            run_id = _run_id(engine, placement, setting, repeat)
            plans.append(RunPlan(run_id, engine, placement, repeat, len(plans), block_seed, setting))
    return plans


def _run_id(engine: str, placement: Placement, setting: Setting, repeat: int) -> str:
    point = ",".join(f"{name}={value}" for name, value in setting.items())
    return "/".join(part for part in (engine, placement.name, point, str(repeat)) if part)
