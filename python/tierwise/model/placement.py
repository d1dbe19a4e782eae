"""Placements: which role lives on which device."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from tierwise.model.errors import TierwiseError
from tierwise.model.roles import ROLES_OF_FILES, SYNONYMS, Role
from tierwise.model.suggestions import names_in, one_of

EVERYTHING = "all"
"""Stands for every role that the placement does not name."""


class DeviceSpec(BaseModel):
    """A device that a study names: an emulated one of a profile, or a real mounted path.

    Two roles mapped to the same device share it, and so disturb each other.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    profile: str | None = Field(default=None, description="profile name or path of an emulated device")
    path: str | None = Field(default=None, description="directory on a real mounted device")
    lies_about_flush: bool = Field(
        default=False, description="an emulated device that acknowledges flushes and does not obey them"
    )
    failed_member: bool = Field(
        default=False, description="an emulated array one of whose members has failed"
    )

    @property
    def emulated(self) -> bool:
        """Whether tierwise makes the device."""
        return self.profile is not None


class Placement(BaseModel):
    """A mapping of role to device name; ``default`` takes every role not listed."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str
    roles: Mapping[Role, str] = Field(default_factory=dict)
    default: str

    def device_of(self, role: Role) -> str:
        """Name of the device that holds ``role``."""
        return self.roles.get(role, self.default)

    def require_known(self, devices: Mapping[str, DeviceSpec], where: str) -> None:
        """Refuse device names that the study does not define.

        Raises:
            TierwiseError: naming ``where`` (a file), the placement, the role and the known devices.
        """
        for role, device in [*self.roles.items(), ("default", self.default)]:
            if device not in devices:
                raise TierwiseError(
                    f"{where}: placements.{self.name}.{role} names the unknown device {device!r}",
                    f"{one_of(device, sorted(devices))}, or add it under [devices]",
                )


RELATION_MARKS = ".*:"
"""A name in a placement with one of these is one of a table or an index, such as ``public.orders``."""


def is_relation(name: str) -> bool:
    """Whether a name in a placement is one of a table or an index, rather than of a role."""
    return any(mark in name for mark in RELATION_MARKS)


def parse_place(text: str, option: str = "--place", *, relations: bool = False) -> dict[str, str]:
    """Role, or ``all``, to device, from ``--place`` or another option: ``log=nvme-dc,data=hdd-7k2``.

    With ``relations``, tables and indexes may take the place of roles: ``public.orders=nvme-dc``.

    Raises:
        TierwiseError: a part that is not ``role=device``, an unknown role, or a role given twice.
    """
    placement: dict[str, str] = {}
    for part in names_in(text):
        role, equals, device = (piece.strip() for piece in part.partition("="))
        if not equals or not device:
            raise TierwiseError(
                f"{option}: {part!r} is not ROLE=DEVICE", "write for example log=nvme-dc,data=hdd-7k2"
            )
        if not (relations and is_relation(role)):
            require_role(role, option)
        if role in placement:
            raise TierwiseError(f"{option}: {role} is given twice", "give each role one device")
        placement[role] = device
    if not placement:
        raise TierwiseError(f"{option} is empty", "write for example log=nvme-dc,data=hdd-7k2")
    return placement


def require_role(role: str, option: str = "--place") -> None:
    """Refuse a name that is neither a role nor ``all``.

    Raises:
        TierwiseError: naming the known roles.
    """
    known = [EVERYTHING, *(one.value for one in ROLES_OF_FILES)]
    if role not in known:
        raise TierwiseError(f"{option}: unknown role {role!r}", one_of(role, known, SYNONYMS))
