"""Share of a database in the page cache, by role."""

from __future__ import annotations

from collections import defaultdict

from tierwise.engines.base import Engine
from tierwise.host.files import files_below
from tierwise.host.page_cache import resident_bytes
from tierwise.model.placement import Role
from tierwise.studies.runner.storage import Storage


def resident_shares(engine: Engine, storage: Storage) -> dict[Role, float]:
    """Share of the bytes of each role's files that are in the page cache; roles without a file are left out.

    Pages held only in the engine's own buffer are not counted.
    """
    return {
        role: resident / held
        for role, (resident, held) in _resident_and_held(engine, storage).items()
        if held
    }


def resident_share(engine: Engine, storage: Storage) -> float | None:
    """The resident share over all roles; ``None`` if there are no files yet."""
    parts = _resident_and_held(engine, storage).values()
    held = sum(held for _, held in parts)
    return sum(resident for resident, _ in parts) / held if held else None


def _resident_and_held(engine: Engine, storage: Storage) -> dict[Role, tuple[int, int]]:
    """Bytes in the page cache and total bytes, of readable files."""
    found: dict[Role, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for path, status in files_below(storage.places.values()):
        role = engine.role_of(path)
        cached = None if role is None else resident_bytes(path)
        if role is not None and cached is not None:
            resident, held = found[role]
            found[role] = (resident + cached, held + status.st_size)
    return dict(found)
