"""A small installation, and each extra alone: what it can do, and the line that says what to type."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.extras_promises import PROMISES, SMALL, names_the_line, run
from support.only_extras import environment
from tierwise.model import extras

BEHIND_AN_EXTRA = {
    "lab.engines.duckdb": "duckdb",
    "lab.engines.objects": "rocksdb",
    "lab.engines.rocksdb": "rocksdb",
    "lab.workloads.sql_translation": "sqlite",
    "serve": "serve",
}
"""Modules that only what calls ``require`` imports. All others can be imported in a small installation."""
_IMPORT_ALL = """
import importlib, pkgutil, tierwise
for found in pkgutil.walk_packages(tierwise.__path__, "tierwise."):
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        print(found.name.removeprefix("tierwise."), error.name.partition(".")[0])
"""
PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def everyones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for what hides modules; databases run as another user."""
    directory = tmp_path_factory.mktemp("hidden")
    for parent in (directory, *directory.parents[:2]):
        parent.chmod(0o755)
    return directory


def missing(directory: Path, *installed: str) -> dict[str, str]:
    """Modules of tierwise that cannot be imported with some extras -> the module that they lack."""
    completed = subprocess.run(
        [PYTHON, "-c", _IMPORT_ALL],
        env=environment(directory, installed),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return dict(line.split() for line in completed.stdout.splitlines())


def test_every_module_declares_what_it_imports(everyones: Path) -> None:
    lacking = missing(everyones)
    for module, lacks in lacking.items():
        extra = next(
            (extra for part, extra in BEHIND_AN_EXTRA.items() if f"{module}.".startswith(f"{part}.")), None
        )
        assert extra is not None, f"tierwise.{module} imports {lacks}: take it from model.extras, or guard it"
        assert lacks in extras.EXTRAS[extra]
    assert missing(everyones, "all") == {}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_installation(name: str, everyones: Path, open_path: Path) -> None:
    done = run(PYTHON, environment(everyones, []), open_path, SMALL[name])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", PROMISES)
def test_what_is_missing_is_one_line(extra: str, everyones: Path, open_path: Path) -> None:
    refused = run(PYTHON, environment(everyones, []), open_path, PROMISES[extra])
    assert names_the_line(refused, extra), refused.stderr
    assert not list(open_path.glob("*.png")) and not (open_path / "results").exists()


@pytest.mark.parametrize("extra", PROMISES)
def test_an_extra_alone(extra: str, everyones: Path, open_path: Path) -> None:
    if extra == "mariadb" and shutil.which("mariadbd") is None:
        pytest.skip("mariadbd is not installed")
    done = run(PYTHON, environment(everyones, [extra]), open_path, PROMISES[extra])
    assert done.returncode == 0, done.stderr
    if PROMISES[extra][0] == "study":
        (results,) = (open_path / "results").glob("*/latest/results.jsonl")
        assert '"status":"ok"' in results.read_text()
        assert "warning: no report: " in done.stderr and extras.install_command("report") in done.stderr


@pytest.mark.parametrize(("dsn", "extra"), [("postgresql://n@h/d", "postgres"), ("mysql://n@h/d", "mariadb")])
def test_observing_needs_a_driver(dsn: str, extra: str, everyones: Path, open_path: Path) -> None:
    refused = run(PYTHON, environment(everyones, []), open_path, ["observe", "-o", "{tmp}/o", "--dsn", dsn])
    assert names_the_line(refused, extra), refused.stderr
