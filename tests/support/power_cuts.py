"""A database under a load of commits, on one emulated disk whose power the tests cut."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tierwise.device_models import profiles
from tierwise.host.disk.disk import WHOLE, EmulatedDisk, Partition
from tierwise.host.disk.disk_config import WRITE_BACK_S
from tierwise.lab import studies
from tierwise.lab.engines.base import Engine
from tierwise.lab.studies.runner.fault_beds import PowerCutBed
from tierwise.model.placement import Role

CLIENTS = 4
ROLE_BYTES = 256 << 20
LARGE_BYTES = 1 << 30
STUDY = studies.load_study("power-cut")


def small(engine: str, **changes: str) -> Mapping[str, str]:
    """The study's settings, under which pages are written back all the time."""
    return {**STUDY.settings[engine], **changes}


@contextlib.contextmanager
def cut_bed(
    engine: Engine, name: str, profile: str, mount_dir: Path, *, fs: str = "", lies: bool = False
) -> Iterator[PowerCutBed]:
    """An engine with a file system for each role; with ``fs``, one of that type for all of them."""
    roles = [] if fs else sorted(engine.roles - {Role.ARCHIVE})
    parts = [Partition(role, ROLE_BYTES) for role in roles] or [Partition(WHOLE, LARGE_BYTES, fs)]
    with contextlib.ExitStack() as undo:
        undo.enter_context(engine)
        disk = undo.enter_context(
            EmulatedDisk.up(name, profiles.load_profile(profile), parts, mount_dir, lies_about_flush=lies)
        )
        undo.callback(engine.crash_stop)
        mount_dir.chmod(0o755)
        disk.set_timing(False)
        engine.init({role: disk.mounts[role] for role in roles} or {Role.SYSTEM: disk.mounts[WHOLE]})
        engine.start()
        bed = PowerCutBed(engine, [disk], CLIENTS, settle_s=WRITE_BACK_S if lies else 0)
        bed.prepare()
        yield bed
