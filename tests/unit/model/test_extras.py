"""The lists of extras agree, and their bounds are the next major version."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from support.extras_promises import PROMISES
from support.only_extras import PROJECT, ROOT, brought, modules_of, requirements
from tierwise.model import extras

OPTIONAL = PROJECT["optional-dependencies"]


def test_the_lists_agree() -> None:
    for extra, modules in extras.EXTRAS.items():
        names = [canonicalize_name(Requirement(line).name) for line in OPTIONAL[extra]]
        assert set(modules) <= modules_of(names), extra
        assert all(modules_of([name]) & set(modules) for name in names), extra
    together = {line for extra in extras.EXTRAS for line in OPTIONAL[extra]}
    assert set(OPTIONAL["all"]) == together
    apart = {"serve", "cluster", "lab"}
    assert set(OPTIONAL["lab"]) == {line for name in extras.EXTRAS.keys() - apart for line in OPTIONAL[name]}
    assert set(PROMISES) == set(extras.EXTRAS)


def test_a_small_installation_is_small() -> None:
    own = [file for file in (ROOT / "python" / "tierwise").rglob("*") if file.is_file()]
    theirs = [metadata.distribution(name).files or [] for name in brought(requirements())]
    files = [*own, *(Path(str(file.locate())) for files in theirs for file in files)]
    size_mb = sum(file.stat().st_size for file in files if file.exists()) / 1e6
    assert size_mb < 60, f"{size_mb:.1f} MB"


def test_bounds_are_the_next_major() -> None:
    for requirement in requirements(*extras.EXTRAS):
        bounds = {part.operator: Version(part.version) for part in requirement.specifier}
        locked = Version(metadata.version(requirement.name))
        assert bounds.keys() == {">=", "<"}, requirement
        assert bounds["<"] == Version(f"{locked.major + 1}"), requirement
