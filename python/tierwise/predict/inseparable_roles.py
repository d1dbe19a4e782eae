"""Roles that an engine keeps in one directory, so that no placement parts them: ``with`` in data/moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tierwise.model.input_files import DATA, read_shipped_toml
from tierwise.model.names import group_by_key
from tierwise.model.placement import Role
from tierwise.predict.named_devices import RECORDED
from tierwise.results.measurements import StrictModel

MOVES = DATA / "moves"
"""One file for each engine: the steps to move a role, or the role that it moves with and why."""
Unit = tuple[Role, ...]
"""Recorded roles that move as one; most are alone."""


class InseparableRoles(StrictModel):
    """Roles that move as one."""

    roles: list[Role]
    """The one that can be moved first, then those that its engine keeps beside it."""
    because: str
    """Why, such as ``SQLite keeps its -wal beside the database``."""


def inseparable_roles_of(engine: str, roles: Collection[Role]) -> list[InseparableRoles]:
    """The roles of a recording that its engine keeps together; none for an engine that is not known."""
    moves = engine_moves(engine)
    groups = group_by_key(
        (Role(lead), role)
        for role in Role
        if role in roles and (lead := moves.get(role.value, {}).get("with"))
    )
    return [
        InseparableRoles(roles=[lead, *others], because=moves["together"]) for lead, others in groups.items()
    ]


def role_units(engine: str, roles: Collection[Role]) -> list[Unit]:
    """All recorded roles, each alone or with those that it cannot be parted from."""
    joined = [
        tuple(role for role in group.roles if role in roles) for group in inseparable_roles_of(engine, roles)
    ]
    taken = {role for unit in joined for role in unit}
    return [*joined, *((role,) for role in roles if role not in taken)]


def parted_role_groups(
    groups: Iterable[InseparableRoles], placement: Mapping[Role, str]
) -> list[InseparableRoles]:
    """The groups that a placement puts on several devices; a role that it does not name stays."""
    return [group for group in groups if len({placement.get(role, RECORDED) for role in group.roles}) > 1]


def engine_moves(engine: str) -> dict[str, Any]:
    """What data/moves says of an engine; empty for one that is not known."""
    file = next((file for file in MOVES.glob("*.toml") if file.stem == engine), None)
    return read_shipped_toml(file) if file else {}
