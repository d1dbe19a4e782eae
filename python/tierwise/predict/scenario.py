"""The question asked of a recording."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from tierwise.device_models.instances import CloudInstance
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import first_validation_problem
from tierwise.model.placement import EVERYTHING, Role, is_relation_name, require_role
from tierwise.model.units import MOST_BYTES
from tierwise.predict.named_devices import RECORDED, is_numbered, resolve_device
from tierwise.results.measurements import StrictModel

LEAST_MEMORY_BYTES = 1 << 20
"""No machine has less; a size below it lacks its unit."""
MOST_CLIENTS = 100_000
MOST_CPU_SPEED = 100.0
_FOLLOW = {
    "recorded_volumes": "recorded_on",
    "set_by_instance": "instance",
    "set_by_growth": "growth",
}
"""Fields that others set."""


def require_asked(fields: Iterable[str]) -> None:
    """Refuse fields of a scenario that nobody asks for, since they follow from others."""
    for name in fields:
        if name in _FOLLOW:
            raise TierwiseError(
                f"{name}: it follows from {_FOLLOW[name]}", f"give {_FOLLOW[name]} in its place"
            )


class Scenario(StrictModel):
    """The recorded work, on another machine.

    Fields that are not given are as recorded.
    """

    placement: dict[str, str] = {}
    """Role, or ``all``, -> ``recorded`` or a device of :func:`tierwise.predict.named_devices.resolve_device`.
    Roles on the same name share one device. Also a table or an index, such as ``public.orders``, see
    :meth:`tierwise.recording.relations.Relations.matching`; all that a scenario names go to one device."""
    memory_bytes: int | None = Field(default=None, gt=0, le=MOST_BYTES)
    """Memory for the engine and the page cache."""
    buffer_bytes: int | None = Field(default=None, gt=0, le=MOST_BYTES)
    """The engine's own buffer, such as ``shared_buffers``, which is a part of the memory."""
    cores: int | None = Field(default=None, ge=1, le=1024)
    cpu_speed: float = Field(default=1.0, ge=0.01, le=MOST_CPU_SPEED)
    """Speed of a core, 1 is that of the recorded machine."""
    clients: int | None = Field(default=None, ge=1, le=MOST_CLIENTS)
    """Client sessions."""
    rate_per_s: float | None = Field(default=None, gt=0, le=1e7)
    """Transactions that arrive in a second, independent of completions. The clients' sessions serve them
    without think time between transactions."""
    settings: list[str] = Field(default=[], max_length=16)
    """Settings of the engine that cost nothing, such as ``synchronous_commit=off``; see
    :mod:`tierwise.predict.database_settings`."""
    growth: float | None = Field(default=None, ge=0.01, le=1000.0)
    """Data and load, as a multiple of the recorded ones; see :mod:`tierwise.predict.scenario_machine`."""
    instance: CloudInstance | None = None
    """The machine: its limits hold for all its network volumes together, and it has cores and memory of its
    own; see :mod:`tierwise.predict.scenario_machine`."""
    recorded_volumes: list[Role] = []
    """Roles whose recorded device is a network volume, by what the user says of it."""
    set_by_instance: list[Literal["cores", "memory_bytes"]] = []
    """Fields whose values follow from ``instance``."""
    set_by_growth: list[Literal["memory_bytes", "rate_per_s"]] = []
    """Fields whose values follow from ``growth``."""
    emulated: bool = False
    """Whether the answer is for disks that tierwise emulates live, which answer no faster than their path."""
    emulated_flushes: bool = False
    """Whether those without a volatile cache are sent flushes all the same, as in the first rounds."""

    @field_validator("memory_bytes", "buffer_bytes")
    @classmethod
    def _has_its_unit(cls, size_bytes: int | None, info: ValidationInfo) -> int | None:
        if size_bytes is not None and 0 < size_bytes < LEAST_MEMORY_BYTES:
            raise TierwiseError(
                f"{info.field_name}: {numbers.counted_noun(size_bytes, 'byte')} is less than any machine has",
                f"give {LEAST_MEMORY_BYTES} or more, in bytes",
            )
        return size_bytes

    @model_validator(mode="after")
    def _placement_is_known(self) -> Self:
        for role in self.placement:
            if not is_relation_name(role):
                require_role(role, "placement")
        for device in dict.fromkeys(self.placement.values()):
            if device != RECORDED:
                resolve_device(device)
        if len({self.placement[name] for name in self.selected}) > 1:
            raise TierwiseError(
                f"tables go to several devices: {', '.join(self.selected)}",
                "place all tables and indexes of one scenario on one device",
            )
        return self

    def changed(self, **fields: Any) -> Self:
        """The same with other values of some fields.

        Raises:
            TierwiseError: a value out of range, an unknown role or device.
        """
        try:
            return super().changed(**fields)
        except ValidationError as error:
            raise TierwiseError(
                first_validation_problem(error, type(self)), "ask for a value in that range"
            ) from None

    def require_disk(self, *, placed: bool) -> None:
        """Refuse to answer for emulated disks where nothing is placed on one."""
        if self.emulated and not placed:
            raise TierwiseError("--emulated: nothing is placed on a disk", "add --place or --devices")

    @property
    def selected(self) -> tuple[str, ...]:
        """Names of tables and indexes that are placed apart from their role, sorted."""
        return tuple(sorted(name for name in self.placement if is_relation_name(name)))

    @property
    def changes(self) -> list[str]:
        """What differs from the recorded, such as ``placement``, ``cores``, ``settings`` or ``instance``."""
        asked = {
            "placement": any(device != RECORDED for device in self.placement.values()),
            "memory": self.memory_bytes is not None,
            "buffer": self.buffer_bytes is not None,
            "cores": self.cores is not None,
            "cpu_speed": self.cpu_speed != 1.0,
            "clients": self.clients is not None,
            "rate": self.rate_per_s is not None,
            "instance": self.instance is not None,
            "settings": bool(self.settings),
        }
        return [name for name, is_asked in asked.items() if is_asked]

    @property
    def beside_placement(self) -> list[str]:
        """What is asked beside the placement, such as ``cores`` or ``growth``, from which others follow."""
        grown = ["growth"] if self.growth is not None else []
        return [*(name for name in self.changes if name != "placement"), *grown]

    def devices_of(self, roles: Iterable[Role]) -> dict[Role, str]:
        """Full name of the device, or ``recorded``, of each of these roles."""
        names = self._names_of(roles)
        return {role: name if name == RECORDED else resolve_device(name).name for role, name in names.items()}

    def numbered(self, roles: Iterable[Role]) -> set[Role]:
        """Those of these roles whose device has a number: other databases may share it."""
        return {role for role, name in self._names_of(roles).items() if is_numbered(name)}

    def _names_of(self, roles: Iterable[Role]) -> dict[Role, str]:
        rest = self.placement.get(EVERYTHING, RECORDED)
        by_name = {role: self.placement.get(role.value, rest) for role in roles}
        if self.selected and Role.SELECTED in by_name:
            by_name[Role.SELECTED] = self.placement[self.selected[0]]
        return by_name
