"""Subprocesses that can import what some extras bring, by the lists of pyproject.toml, and nothing else."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
_SITE = """
import os, sys
from importlib.machinery import PathFinder

class Installed(PathFinder):
    hidden = frozenset(os.environ["TIERWISE_TEST_HIDDEN"].split())

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in cls.hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
"""


def requirements(*extras: str) -> list[Requirement]:
    """What pyproject.toml lists for some extras, with the dependencies of all."""
    listed = [*PROJECT["dependencies"]]
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    return [Requirement(line) for line in listed]


def brought(wanted: Iterable[Requirement]) -> set[str]:
    """Names of the distributions that come with some requirements, themselves included."""
    brought: set[str] = set()
    ahead = [(requirement, extra) for requirement in wanted for extra in ("", *requirement.extras)]
    seen: set[tuple[str, str]] = set()
    while ahead:
        extras, extra = ahead.pop()
        name = canonicalize_name(extras.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        brought.add(name)
        ahead += [(other, own) for other in _required(name, extra) for own in ("", *other.extras)]
    return brought


def _required(name: str, extra: str) -> Iterator[Requirement]:
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


@cache
def _modules() -> dict[str, set[str]]:
    """Top-level module -> distributions that contain it."""
    distributions = metadata.packages_distributions()
    return {
        module: set(map(canonicalize_name, names))
        for module, names in distributions.items()
        if module != "tierwise"
    }


def modules_of(distributions: Iterable[str]) -> set[str]:
    """Top-level modules of some distributions."""
    wanted = set(distributions)
    return {module for module, owners in _modules().items() if owners & wanted}


def environment(directory: Path, extras: Sequence[str]) -> dict[str, str]:
    """Variables of a process that sees these extras alone.

    Args:
        directory: where to put what hides the rest.
        extras: of pyproject.toml.
    """
    (directory / "sitecustomize.py").write_text(_SITE)
    hidden = _modules().keys() - modules_of(brought(requirements(*extras)))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(directory), str(ROOT / "python")]),
        "TIERWISE_TEST_HIDDEN": " ".join(sorted(hidden)),
    }
