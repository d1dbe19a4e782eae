"""Machines of clouds: limits for all their network volumes together, processors and memory.

From a TOML file as ``data/instances.toml``, or from JSON as ``aws ec2 describe-instance-types`` and
``az vm list-skus`` print it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tierwise.device_models.prices import Date
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, first_validation_problem, parse_json, parse_toml, read_text
from tierwise.model.names import unknown_name_fix
from tierwise.results.measurements import StrictModel

SHIPPED = DATA / "instances.toml"
AWS_BURST_MINUTES = 30.0
"""Amazon EC2 user guide, EBS-optimized instance types: an instance supports its maximum for 30 minutes at
least once a day, then its baseline (from memory)."""
_FIX = "mend that field; see docs/how-to/machine.md"
_TOML_FIX = "mend the TOML, or name a file of JSON *.json"
_JSON_FIX = (
    "give what aws ec2 describe-instance-types --output json or az vm list-skus --resource-type "
    "virtualMachines --output json prints, or for another cloud a file *.toml; see docs/how-to/machine.md"
)
_READABLE = "give a readable file of the form that docs/how-to/machine.md describes"
_MOST_INSTANCES = 1000

Rate = Annotated[float, Field(ge=1e-6, le=1e9, allow_inf_nan=False)]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class InstanceBurst(StrictModel):
    """What a machine reaches for a time."""

    iops: Rate
    """I/Os per second."""
    mb_per_s: Rate
    """10⁶ bytes per second."""
    minutes: float = Field(default=AWS_BURST_MINUTES, ge=1e-3, le=1440)
    """How long it lasts from full credits, which come in at the baseline."""


class InstanceLimits(StrictModel):
    """A machine as one entry of a file describes it."""

    family: str = ""
    """Machines with the same family differ in size alone."""
    vcpus: int | None = Field(default=None, ge=1, le=1024)
    """Processors that the operating system sees."""
    memory_gib: float | None = Field(default=None, ge=0.01, le=1e6, allow_inf_nan=False)
    """Memory, in GiB."""
    iops: Rate
    """I/Os per second that it sustains to all network volumes together."""
    mb_per_s: Rate
    """10⁶ bytes per second that it sustains to all network volumes together."""
    burst: InstanceBurst | None = None
    """What it reaches for a time; ``None`` if it has no burst."""
    per_month: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    """Rent a month, in the currency of the file."""
    source: str = Field(min_length=12)
    """Where the numbers come from."""
    date: Date | None = None
    """Day, month or year of the numbers."""
    checked: bool = True
    """Whether somebody compared them with the source."""

    @model_validator(mode="after")
    def _burst_is_more(self) -> InstanceLimits:
        burst = self.burst
        if burst and (burst.iops < self.iops or burst.mb_per_s < self.mb_per_s):
            raise ValueError("burst is below iops or mb_per_s, which are what the machine sustains")
        return self


class CloudInstance(InstanceLimits):
    """A machine with its name."""

    name: Name
    """Its name, such as ``m6i.large``."""
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    """Of its rent, a code of ISO 4217."""


class InstanceFile(StrictModel):
    """The fields of a TOML file of machines, such as ``data/instances.toml``."""

    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    """Of every rent in the file, a code of ISO 4217."""
    instances: dict[Name, InstanceLimits] = Field(min_length=1, max_length=_MOST_INSTANCES)
    """Name of a machine, such as ``m6i.large``, -> what it has."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _EbsOptimizedInfo(_Answer):
    BaselineIops: Rate
    BaselineThroughputInMBps: Rate
    MaximumIops: Rate
    MaximumThroughputInMBps: Rate


class _EbsInfo(_Answer):
    EbsOptimizedInfo: _EbsOptimizedInfo


class _VCpuInfo(_Answer):
    DefaultVCpus: int = Field(ge=1, le=1024)


class _MemoryInfo(_Answer):
    SizeInMiB: float = Field(ge=10, le=1e9)


class _InstanceType(_Answer):
    InstanceType: Name
    EbsInfo: _EbsInfo
    VCpuInfo: _VCpuInfo
    MemoryInfo: _MemoryInfo

    def instance(self, file: Path) -> CloudInstance:
        limits = self.EbsInfo.EbsOptimizedInfo
        most = limits.MaximumIops, limits.MaximumThroughputInMBps
        base = limits.BaselineIops, limits.BaselineThroughputInMBps
        return CloudInstance(
            name=self.InstanceType,
            family=self.InstanceType.partition(".")[0],
            vcpus=self.VCpuInfo.DefaultVCpus,
            memory_gib=self.MemoryInfo.SizeInMiB / 1024,
            iops=base[0],
            mb_per_s=base[1],
            burst=InstanceBurst(iops=most[0], mb_per_s=most[1]) if most != base else None,
            source=f"{file.name}: aws ec2 describe-instance-types",
        )


class _Described(_Answer):
    InstanceTypes: list[_InstanceType] = Field(min_length=1, max_length=_MOST_INSTANCES)


class _Capabilities(_Answer):
    vcpus: int = Field(alias="vCPUs", ge=1, le=1024)
    MemoryGB: float = Field(ge=0.01, le=1e6)
    UncachedDiskIOPS: Rate
    UncachedDiskBytesPerSecond: float = Field(ge=1, le=1e15)


class _Sku(_Answer):
    name: Name
    family: str = Field(max_length=100)
    capabilities: _Capabilities

    @field_validator("capabilities", mode="before")
    @classmethod
    def _by_name(cls, capabilities: Any) -> Any:
        try:
            return {str(capability["name"]): capability["value"] for capability in capabilities}
        except (KeyError, TypeError):
            raise ValueError("not a list of capabilities with their name and value") from None

    def instance(self, file: Path) -> CloudInstance:
        has = self.capabilities
        return CloudInstance(
            name=self.name,
            family=re.sub(r"^standard(.+)Family$", r"\1", self.family),
            vcpus=has.vcpus,
            memory_gib=has.MemoryGB,
            iops=has.UncachedDiskIOPS,
            mb_per_s=has.UncachedDiskBytesPerSecond / 1e6,
            source=f"{file.name}: az vm list-skus",
        )


class _Listed(_Answer):
    skus: list[_Sku] = Field(min_length=1, max_length=_MOST_INSTANCES)


def find_instances(names: Sequence[str]) -> list[CloudInstance]:
    """The machines that a user names: shipped ones by name, or all those of a file.

    Raises:
        TierwiseError: an unknown name, an unreadable file, two machines of one name.
    """
    instances = [
        instance for name in names for instance in (_read(Path(name)) if _is_file(name) else [_shipped(name)])
    ]
    counts = Counter(instance.name for instance in instances)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise TierwiseError(
            f"--instance: two machines are named {twice[0]}", "name each once, and by a name of its own"
        )
    return instances


def find_instance(name: str) -> CloudInstance:
    """The one machine that a name or a file stands for.

    Raises:
        TierwiseError: as :func:`find_instances`; a file with several machines.
    """
    instances = find_instances([name])
    if len(instances) > 1:
        names = ", ".join(instance.name for instance in instances[:3])
        raise TierwiseError(
            f"{name} describes {len(instances)} machines: {names} …",
            "give a file with one of them",
        )
    return instances[0]


def larger_instances(instance: CloudInstance) -> list[CloudInstance]:
    """The shipped machines of the same family that are larger, the smallest first."""
    sizes = _all_shipped().values()
    name = instance.family.casefold()
    family = [other for other in sizes if other.family and other.family.casefold() == name]
    return sorted(
        (other for other in family if (other.vcpus or 0) > (instance.vcpus or 0)),
        key=lambda other: other.vcpus or 0,
    )


def instance_rent_per_month(instances: Sequence[CloudInstance], cores: int, currency: str) -> float | None:
    """Rent of one more machine like the first, or like that which was recorded; ``None`` if not known.

    Args:
        instances: the machine of the database, then others; none if it was not named.
        cores: recorded ones. A machine without a rent of its own in the currency, also one that is owned, has
            the median rent of a shipped processor.
        currency: of the rent.
    """
    if instances and instances[0].per_month and instances[0].currency == currency:
        return instances[0].per_month
    of_each = [
        shipped.per_month / shipped.vcpus
        for shipped in _all_shipped().values()
        if shipped.per_month and shipped.vcpus and shipped.currency == currency
    ]
    vcpus = instances[0].vcpus if instances else None
    return median(of_each) * (vcpus or cores) if of_each else None


def instance_limits_only(instance: CloudInstance) -> CloudInstance:
    """The machine without its processors and memory: a scenario with it keeps the recorded ones."""
    return instance.changed(vcpus=None, memory_gib=None)


def _is_file(name: str) -> bool:
    path = Path(name)
    return path.suffix in (".toml", ".json") or len(path.parts) > 1


def _shipped(name: str) -> CloudInstance:
    known = _all_shipped()
    if name not in known:
        raise TierwiseError(
            f"--instance: {name!r} is not known", f"{unknown_name_fix(name, known)}, or give a file"
        )
    return known[name]


@cache
def _all_shipped() -> dict[str, CloudInstance]:
    return {instance.name: instance for instance in _read(SHIPPED)}


def _read(file: Path) -> list[CloudInstance]:
    text = read_text(file, _READABLE)
    is_json = file.suffix == ".json"
    try:
        if is_json:
            answer = parse_json(text, str(file), _JSON_FIX)
            return [machine.instance(file) for machine in _described(answer)]
        file_content = InstanceFile.model_validate(parse_toml(text, str(file), _TOML_FIX))
        return [
            CloudInstance(name=name, currency=file_content.currency, **dict(figures))
            for name, figures in file_content.instances.items()
        ]
    except ValidationError as error:
        problem = first_validation_problem(error, InstanceFile)
        raise TierwiseError(f"{file}: {problem}", _JSON_FIX if is_json else _FIX) from None


def _described(answer: Any) -> Sequence[_InstanceType | _Sku]:
    """The types of the provider's answer: the whole of it, its list, or one type alone."""
    if isinstance(answer, dict) and answer.keys() & {"InstanceType", "capabilities"}:
        answer = [answer]
    if not isinstance(answer, list):
        return _Described.model_validate(answer).InstanceTypes
    if any(isinstance(machine, dict) and "capabilities" in machine for machine in answer):
        return _Listed.model_validate({"skus": answer}).skus
    return _Described.model_validate({"InstanceTypes": answer}).InstanceTypes
