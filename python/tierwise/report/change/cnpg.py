"""CloudNativePG: a patch of a ``Cluster``'s storage.

Fields by the CRD postgresql.cnpg.io/v1, ``Cluster``; rules by CloudNativePG's documentation, 'Storage' and
'Tablespaces': a class of storage holds for new volumes alone, sizes never shrink, and a WAL volume stays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tierwise.device_models.prices import gib_for_speed
from tierwise.model.errors import TierwiseError
from tierwise.model.names import group_by_key, join_words
from tierwise.model.placement import ROLE_NAMES, Role
from tierwise.predict import resolve_device
from tierwise.report.change.placement_change import (
    PlacementChange,
    comment_line,
    text_of_lines,
    whole_gib,
    yaml_lines,
)

API_VERSION = "postgresql.cnpg.io/v1"
TEMPORARY = "moved_temp"
_PGDATA = (Role.DATA, Role.INDEX, Role.SYSTEM)
"""Roles that lie in PGDATA, which is one volume."""
_VOLUMES = (Role.DATA, Role.LOG, Role.TEMP)
"""Roles with a volume of their own."""
_NOT_PLACED: Mapping[Role, str] = {
    Role.ARCHIVE: "it archives to an object store",
    Role.UNDO: "PostgreSQL has no such files",
    Role.DOUBLEWRITE: "PostgreSQL has no such files",
}
_OTHERS = "give --emit ansible, terraform or fio"
_MOST_NAME = 253
"""Characters of a Kubernetes name."""


def cluster_patch(change: PlacementChange) -> str:
    """A merge patch in YAML for ``kubectl patch cluster NAME --type merge --patch-file FILE``."""
    if change.engine != "postgres":
        raise TierwiseError(f"--emit cnpg: CloudNativePG runs PostgreSQL, not {change.engine}", _OTHERS)
    _require_placeable(change)
    patch = {"apiVersion": API_VERSION, "kind": "Cluster", "spec": _spec(change)}
    return text_of_lines([*(comment_line(line) for line in _notes(change)), *yaml_lines(patch)])


def storage_class(device: str) -> str:
    """A name that Kubernetes accepts for the class of storage of a device."""
    name = resolve_device(device).profile.name.lower()
    return re.sub(r"[^a-z0-9]+", "-", name)[:_MOST_NAME].strip("-") or "new-device"


def _require_placeable(change: PlacementChange) -> None:
    for role, why in _NOT_PLACED.items():
        if role in change.moves:
            raise TierwiseError(f"--emit cnpg: CloudNativePG cannot place the {role}: {why}", _OTHERS)
    apart = [
        role for role in _PGDATA if role in change.moves and change.moves[role] != change.moves.get(Role.DATA)
    ]
    if apart:
        raise TierwiseError(
            f"--emit cnpg: CloudNativePG keeps {', '.join(apart)} in PGDATA, with the data, which the advice "
            "has elsewhere",
            _OTHERS,
        )


def _spec(change: PlacementChange) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if Role.DATA in change.moves:
        elsewhere = {Role.ARCHIVE, *({Role.LOG, Role.TEMP} & change.moves.keys())}
        in_pgdata = [role for role in change.needed_bytes if role not in elsewhere]
        size_gib = max(change.size_gib(in_pgdata), whole_gib(change.directory_bytes))
        spec["storage"] = _storage(change, Role.DATA, size_gib)
    if Role.LOG in change.moves:
        spec["walStorage"] = _storage(change, Role.LOG, change.size_gib([Role.LOG]))
    if Role.TEMP in change.moves:
        storage = _storage(change, Role.TEMP, change.size_gib([Role.TEMP]))
        spec["tablespaces"] = [{"name": TEMPORARY, "temporary": True, "storage": storage}]
    return spec


def _storage(change: PlacementChange, role: Role, size_gib: int) -> dict[str, Any]:
    """A volume of its own, no smaller than it is billed for and than its speed needs."""
    device = change.moves[role]
    billed_gib = 0.0 if device in _parted(change) else change.rented_gib.get(device, 0.0)
    least_gib = max(billed_gib, gib_for_speed(resolve_device(device).profile))
    return {"size": f"{max(size_gib, math.ceil(least_gib))}Gi", "storageClass": storage_class(device)}


def _parted(change: PlacementChange) -> dict[str, list[Role]]:
    """Devices whose files become several volumes, with the role of each."""
    held = group_by_key((change.moves[role], role) for role in _VOLUMES if role in change.moves)
    return {device: roles for device, roles in held.items() if len(roles) > 1}


def _notes(change: PlacementChange) -> Iterator[str]:
    yield "kubectl patch cluster NAME --type merge --patch-file THIS_FILE"
    for device in change.devices:
        profile = resolve_device(device).profile
        yield f"storageClass {storage_class(device)}: a class of yours with {profile.summary}."
    for device, roles in _parted(change).items():
        files, name = join_words([ROLE_NAMES[role] for role in roles]), resolve_device(device).profile.name
        yield f"The advice has {files} on one {name}: here each has a volume of its own, and its own price."
    yield "A size cannot shrink: keep the cluster's own where it is larger."
    if Role.DATA in change.moves:
        yield "A class holds for new volumes: recreate the instances one by one, replicas first."
        along = [role for role in _PGDATA if role in change.needed_bytes and role not in change.moves]
        if along:
            names = join_words([ROLE_NAMES[role] for role in along])
            yield f"PGDATA is one volume: {names} move along, and it is larger than the advice has priced."
        if Role.LOG not in change.moves:
            yield "pg_wal is in PGDATA and moves along, unless the cluster has spec.walStorage."
    if Role.LOG in change.moves:
        if Role.DATA not in change.moves:
            yield (
                "A class holds for new volumes: if the cluster has spec.walStorage already, recreate the "
                "instances one by one, replicas first."
            )
        yield "spec.walStorage cannot be removed again."
    if Role.TEMP in change.moves:
        yield "The patch replaces the list spec.tablespaces: add those that the cluster has."
