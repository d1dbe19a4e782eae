"""Placement verification: where each role's files were, bytes to its device, share in the page cache."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tierwise.host.page_cache import files_below, open_files, resident_bytes
from tierwise.lab.engines.base import Engine
from tierwise.lab.studies.runner.run_storage import RunStorage
from tierwise.model.placement import Role
from tierwise.results.measurements import Counters, RoleProof


def resident_shares(engine: Engine, storage: RunStorage) -> dict[Role, float]:
    """Share of the bytes of each role's files that are in the page cache; roles without a file are left out.

    Pages held only in the engine's own buffer are not counted.
    """
    return {
        role: resident / held
        for role, (resident, held) in _resident_and_held(engine, storage).items()
        if held
    }


def resident_share(engine: Engine, storage: RunStorage) -> float | None:
    """The resident share over all roles; ``None`` if there are no files yet."""
    parts = _resident_and_held(engine, storage).values()
    held = sum(held for _, held in parts)
    return sum(resident for resident, _ in parts) / held if held else None


def _resident_and_held(engine: Engine, storage: RunStorage) -> dict[Role, tuple[int, int]]:
    """Bytes in the page cache and total bytes, of readable files."""
    groups: dict[Role, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for path, status in files_below(storage.places.values()):
        role = engine.role_of(path)
        cached = None if role is None else resident_bytes(path)
        if role is not None and cached is not None:
            resident, held = groups[role]
            groups[role] = (resident + cached, held + status.st_size)
    return dict(groups)


_PERIOD_S = 0.5
_LOG_SHARE_MIN = 0.9
"""A smaller written share of a log cannot be explained by files deleted before writeback."""
_MOST_STRAYS = 5


class PlacementVerifier:
    """Samples the engine's open files twice a second, from construction to :meth:`close`.

    It misses a file that is open only between two samples, such as that of a short sort.
    """

    def __init__(self, engine: Engine, storage: RunStorage) -> None:
        """Start sampling; all roles must have their places."""
        self._engine, self._storage = engine, storage
        self._devices = {role: place.stat().st_dev for role, place in storage.places.items()}
        self._roles: dict[Path, Role] = {}
        self._files: dict[Role, set[Path]] = defaultdict(set)
        self._strays: dict[Role, set[Path]] = defaultdict(set)
        self._reached_before = storage.written_bytes()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sampling. No error if it has stopped."""
        self._stopping.set()
        self._thread.join()

    def verify(self, counters: Counters | None) -> dict[Role, RoleProof]:
        """Check all files on disk as well, and compare the engine's writes with those of each device.

        All data must have been written out before.

        Args:
            counters: the engine's counters of the measured phase.
        """
        self.close()
        self._look_at_open_files()
        for path, status in files_below(set(self._storage.places.values())):
            self._note(path, status.st_dev)
        held_bytes, counted = self._held_bytes(), counters or Counters()
        counted_bytes = {
            Role.LOG: counted.log_bytes,
            Role.TEMP: counted.temp_bytes,
            Role.DOUBLEWRITE: counted.doublewrite_bytes,
        }
        reached = self._storage.written_bytes()
        return {
            role: self._proof(role, reached[role], counted_bytes.get(role), held_bytes.get(role))
            for role in self._storage.places
        }

    def _proof(self, role: Role, reached: int | None, counted: int | None, held: int | None) -> RoleProof:
        before = self._reached_before[role]
        if counted is not None and reached is not None and before is not None:
            reached -= before
        written = held if counted is None else counted
        share = min(1.0, reached / written) if reached is not None and written else None
        return RoleProof(
            device=self._storage.role_devices[role],
            reached_bytes=reached,
            written_bytes=written,
            share=share,
            files=len(self._files[role]),
            strays=sorted(map(str, self._strays[role]))[:_MOST_STRAYS],
        )

    def _run(self) -> None:
        while True:
            # An engine that another thread is restarting may fail in any way.
            with contextlib.suppress(Exception):
                self._look_at_open_files()
            if self._stopping.wait(_PERIOD_S):
                return

    def _look_at_open_files(self) -> None:
        for file in open_files(self._engine.processes()):
            self._note(file.path, file.device)

    def _note(self, path: Path, device: int) -> None:
        role = self._roles.get(path) or self._engine.role_of(path)
        if role is None:
            return
        self._roles[path] = role
        placed = role if role in self._devices else self._engine.inside.get(role, Role.SYSTEM)
        self._files[placed].add(path)
        if device != self._devices[placed]:
            self._strays[placed].add(path)

    def _held_bytes(self) -> dict[Role, int]:
        held: dict[Role, int] = defaultdict(int)
        for role, paths in self._files.items():
            for path in paths:
                try:
                    held[role] += path.stat().st_blocks * 512
                except OSError:
                    continue
        return held


def placement_problems(proof: Mapping[Role, RoleProof]) -> list[str]:
    """Reasons why a run violated its placement, each naming role and path; empty if it complied."""
    strays = [
        f"role {role} leaked: {path} is not on device {role_proof.device}"
        for role, role_proof in proof.items()
        for path in role_proof.strays
    ]
    log = proof.get(Role.LOG)
    if log is None or log.share is None or log.share >= _LOG_SHARE_MIN:
        return strays
    missing = f"of {log.written_bytes} bytes of log {log.reached_bytes} reached device {log.device}"
    return [*strays, f"role log leaked: {missing}"]
