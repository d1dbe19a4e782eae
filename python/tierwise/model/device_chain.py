"""The devices under a file system, down to the physical ones: the form in a recording, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pydantic import BaseModel, ConfigDict

from tierwise.model.units import SECTOR_BYTES


class ChainLink(BaseModel):
    """A file system or a device; the devices below it follow it, with a ``depth`` one higher."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    depth: int
    """0 for the file system."""
    kind: str
    """``ext4``, ``LVM volume``, ``partition``, ``disk``."""
    name: str | None = None
    """The kernel's name of the device."""
    label: str | None = None
    """The name that its owner or maker gave it: of a volume, a backing file, a model."""
    sectors: int | None = None
    rotational: bool | None = None
    """Whether the kernel reports the disk as rotational."""

    @property
    def words(self) -> str:
        """Text of this link alone."""
        size = None if self.sectors is None else f"{self.sectors * SECTOR_BYTES / 1e9:,.1f} GB"
        turns = None if self.rotational is None else "rotational" if self.rotational else "not rotational"
        facts = ", ".join(fact for fact in (self.label, size, turns) if fact is not None)
        return " ".join(part for part in (self.kind, self.name, f"({facts})" if facts else None) if part)


def in_words(chain: Sequence[ChainLink]) -> str:
    """A chain on one line, ``xfs on LVM volume dm-0 (pg-log, 10.0 GB) on disk sda (500.1 GB)``."""
    if not chain:
        return "not known"
    text = chain[0].words
    for above, link in pairwise(chain):
        text += f" on {link.words}" if link.depth > above.depth else f", and on {link.words}"
    return text
