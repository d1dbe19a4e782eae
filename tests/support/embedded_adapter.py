"""Adapters of embedded engines in the tests' own process, without a worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.embedded.embedded_adapter import EmbeddedAdapter, OpenParameters
from tierwise.model.placement import Role

A = TypeVar("A", bound=EmbeddedAdapter)


def open_in(
    adapter: A,
    directory: Path,
    roles: Iterable[Role],
    settings: Mapping[str, str] | None,
    limits: ResourceLimits,
) -> A:
    """The adapter, opened on a directory for each role and one for what belongs to none."""
    directories = {role: directory / role for role in roles}
    for path in [*directories.values(), directory / "home"]:
        path.mkdir(exist_ok=True, parents=True)
    adapter.open(OpenParameters(directories, directory / "home", settings or {}, limits))
    return adapter
