"""A private tracefs mount with private instances, entered in the ledger before tracing is switched on.

The private mount works wherever, or whether, the machine mounts tracefs. An instance has its own buffers
and switches, so that other users of tracing are not disturbed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tierwise.host import ledger, mounts
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.output_files import new_folder

_GONE_WITHIN_S = 30


@dataclass(frozen=True)
class Tracing:
    """A mounted tracefs; as a context manager it switches tracing off and unmounts itself."""

    entry: ledger.Entry
    mount: Path
    """Root of the file system."""

    @property
    def instance(self) -> str:
        """Name prefix of every instance made here."""
        return self.entry.name

    @classmethod
    def open(cls) -> Self:
        """Mount a tracefs on a new directory."""
        if (reason := impossible()) is not None:
            raise HostError(f"cannot record here: {reason}", "run it as root, on a kernel with tracefs")
        name = _new_name()
        point = _point(name)
        entry = ledger.add("tracing", name, mount=str(point))
        try:
            new_folder(point)
            mounts.mount("none", point, "tracefs")
        except BaseException:
            undo(entry)
            raise
        return cls(entry, point)

    @contextlib.contextmanager
    def made(self, name: str) -> Iterator[Path]:
        """Make an instance, whose name must begin with :attr:`instance`; remove it at the end."""
        path = self.mount / "instances" / name
        path.mkdir()
        try:
            yield path
        finally:
            _remove_instance(path)

    def close(self) -> None:
        """Switch off and remove all remaining instances, then unmount. No error if already closed."""
        undo(self.entry)

    def __enter__(self) -> Self:
        """Give the tracing."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _new_name() -> str:
    return f"tierwise-{secrets.token_hex(4)}"


def _point(name: str) -> Path:
    return ledger.run_dir() / f"{name}.tracefs"


def impossible() -> str | None:
    """Reason why tracing is not possible here, or ``None`` if it is."""
    if os.geteuid() != 0:
        return "only root may read the kernel's tracepoints"
    if "tracefs" not in Path("/proc/filesystems").read_text("ascii").split():
        return "this kernel has no tracefs"
    return None


def undo(entry: ledger.Entry) -> None:
    """Undo an entry of the ledger.

    Raises:
        TierwiseError: naming the instance or mount that is still in use; the entry stays.
    """
    point = Path(entry.facts["mount"])
    if point != _point(entry.name):
        raise TierwiseError(f"{point} is not where tierwise mounts {entry.name}", f"rm {entry.path}")
    if mounts.mount_at(point) is not None:
        for instance in sorted((point / "instances").glob(f"{entry.name}*")):
            _remove_instance(instance)
        mounts.unmount(point)
    if point.exists():
        point.rmdir()
    entry.remove()


def _remove_instance(instance: Path) -> None:
    for switch in ("tracing_on", "events/enable"):
        with contextlib.suppress(OSError):
            (instance / switch).write_text("0")
    deadline = time.monotonic() + _GONE_WITHIN_S
    while True:
        try:
            return instance.rmdir()
        except FileNotFoundError:
            return None
        except OSError as error:
            if time.monotonic() > deadline:
                raise TierwiseError(
                    f"{instance}: {error.strerror}", "end what reads it, then tierwise clean"
                ) from error
            time.sleep(0.02)
