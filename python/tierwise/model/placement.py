"""Roles of files, placements of roles on devices, and the choice of the cheapest that is as good as the best.

One that keeps files in memory comes after all that do not, since a power cut or a restart loses these files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tierwise.model.errors import TierwiseError
from tierwise.model.names import split_names, unknown_name_fix


class Role(StrEnum):
    """The roles that a placement maps to devices."""

    LOG = "log"
    """Write-ahead log, redo log, logical log."""
    DOUBLEWRITE = "doublewrite"
    """Physical log, rollback journal."""
    DATA = "data"
    """Tables."""
    INDEX = "index"
    """Indexes."""
    UNDO = "undo"
    """Undo or rollback segments."""
    TEMP = "temp"
    """Sorts, hash joins and temporary tables that spill."""
    SYSTEM = "system"
    """Catalogue, control files and files of no other role."""
    ARCHIVE = "archive"
    """Archived log, binary log."""
    SELECTED = "selected"
    """Tables and indexes that a question places apart from the others; no file is recorded with it."""


ROLES_OF_FILES = tuple(role for role in Role if role is not Role.SELECTED)
"""Those that files of a database can have."""
ROLE_NAMES = {
    Role.LOG: "the log",
    Role.DOUBLEWRITE: "the doublewrite area",
    Role.DATA: "the data",
    Role.INDEX: "the indexes",
    Role.SELECTED: "the selected tables",
    Role.UNDO: "the undo",
    Role.TEMP: "the temporary files",
    Role.SYSTEM: "the system files",
    Role.ARCHIVE: "the archive",
}
"""Each role in a sentence."""
SYNONYMS: dict[str, str] = {
    **dict.fromkeys(("wal", "pg_wal", "pg_xlog", "xlog", "redo", "journal", "logs", "iblog"), Role.LOG.value),
    **dict.fromkeys(("binlog", "archives", "archivelog"), Role.ARCHIVE.value),
    **dict.fromkeys(("table", "tables", "heap", "tablespace", "datafiles"), Role.DATA.value),
    **dict.fromkeys(("indexes", "indices", "idx"), Role.INDEX.value),
    **dict.fromkeys(("tmp", "sort", "temporary", "pgsql_tmp"), Role.TEMP.value),
    **dict.fromkeys(("rollback", "undologs"), Role.UNDO.value),
    **dict.fromkeys(("dblwr", "double-write", "double_write"), Role.DOUBLEWRITE.value),
    "catalog": Role.SYSTEM.value,
}
"""What engines call a role -> its name."""


EVERYTHING = "all"
"""Stands for every role that the placement does not name."""
_PLACED = (EVERYTHING, *(role.value for role in ROLES_OF_FILES))


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
        """Refuse device names that the study does not define."""
        for role, device in [*self.roles.items(), ("default", self.default)]:
            if device not in devices:
                raise TierwiseError(
                    f"{where}: placements.{self.name}.{role} names the unknown device {device!r}",
                    f"{unknown_name_fix(device, sorted(devices))}, or add it under [devices]",
                )


RELATION_MARKS = ".*:"
"""A name in a placement with one of these is one of a table or an index, such as ``public.orders``."""


def is_relation_name(name: str) -> bool:
    """Whether a name in a placement is one of a table or an index, rather than of a role."""
    return any(mark in name for mark in RELATION_MARKS)


def parse_placement(text: str, option: str = "--place", *, relations: bool = False) -> dict[str, str]:
    """Role, or ``all``, to device, from ``--place`` or another option: ``log=nvme-dc,data=hdd-7k2``.

    With ``relations``, tables and indexes may take the place of roles: ``public.orders=nvme-dc``.
    """
    placement: dict[str, str] = {}
    for part in split_names(text):
        role, equals, device = (piece.strip() for piece in part.partition("="))
        if not equals or not device:
            raise TierwiseError(
                f"{option}: {part!r} is not ROLE=DEVICE", "write for example log=nvme-dc,data=hdd-7k2"
            )
        if not (relations and is_relation_name(role)):
            require_role(role, option)
        if role in placement:
            raise TierwiseError(f"{option}: {role} is given twice", "give each role one device")
        placement[role] = device
    if not placement:
        raise TierwiseError(f"{option} is empty", "write for example log=nvme-dc,data=hdd-7k2")
    return placement


def require_role(role: str, option: str = "--place") -> None:
    """Refuse a name that is neither a role nor ``all``."""
    if role not in _PLACED:
        raise TierwiseError(f"{option}: unknown role {role!r}", unknown_name_fix(role, _PLACED, SYNONYMS))


T = TypeVar("T")


def recommended_placement(by_price: Iterable[T], alike: Callable[[T], bool]) -> T | None:
    """The first placement, in the order of :func:`price_order`, that cannot be told from the best one.

    Advice and the reports of studies both choose by it. Placements after the answer are not asked for.
    """
    return next(filter(alike, by_price), None)


def price_order(
    cost_per_month: float | None, moves: int, devices: int, gain: float, in_memory: bool = False
) -> tuple[bool, float, int, int, float]:
    """Sort key: the lowest cost, then the fewest moves, then the fewest new devices, then the most gain.

    An unknown cost comes after all known ones. A placement that keeps files which must last in memory comes
    after all that do not.
    """
    return in_memory, math.inf if cost_per_month is None else cost_per_month, moves, devices, -gain
