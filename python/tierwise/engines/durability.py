"""The durability settings of an engine, which are data in its folder: ``durability.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

FILE = "durability.toml"


class DurabilitySetting(BaseModel):
    """One way to commit, and what the engine's maker says of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """As reports write it, such as ``synchronous_commit=off``."""
    settings: Mapping[str, str] = {}
    """The engine's settings that differ from those of its study."""
    durable: bool
    """Whether an acknowledged commit survives a power cut on a device that is honest about flushes."""
    promise: str
    source: str


def load(folder: Path) -> list[DurabilitySetting]:
    """The settings of the engine in a folder, the safest first; an engine without a file has its defaults."""
    file = folder / FILE
    if not file.exists():
        return []
    found = tomllib.loads(file.read_text("utf-8"))["setting"]
    return [DurabilitySetting.model_validate(one) for one in found]
