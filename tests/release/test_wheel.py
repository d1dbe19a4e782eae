"""What is published: the wheel's and the source distribution's files, and an installation of the wheel."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from support.paths import ROOT

VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["version"]
INFO = f"tierwise-{VERSION}.dist-info"
SOURCES = ("Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml", ".cargo/config.toml")
LARGEST_WHEEL_MB = 10


def maturin(*arguments: str, out: Path) -> Path:
    """What maturin makes of the module that `make env` has compiled."""
    program = Path(sys.executable).with_name("maturin")
    subprocess.run([program, *arguments, "--out", out], cwd=ROOT, capture_output=True, check=True)
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return maturin("build", "--release", "--locked", out=tmp_path_factory.mktemp("dist"))


def tracked(*folders: str) -> set[str]:
    """Files of these folders that are in the repository, as paths from its root."""
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return set(listed.splitlines())


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        tags = archive.read(f"{INFO}/WHEEL").decode()
    package = {name.removeprefix("python/") for name in tracked("python")}
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    made = {"tierwise/_core.abi3.so", *(f"{INFO}/{name}" for name in about)}
    boms = {name for name in names if name.startswith(f"{INFO}/sboms/")}
    assert names - boms == package | made
    assert "Tag: cp311-abi3-" in tags
    assert wheel.stat().st_size < LARGEST_WHEEL_MB * 1e6


def test_the_source_distribution_has_all_that_a_build_reads(tmp_path: Path) -> None:
    made = maturin("sdist", out=tmp_path)
    with tarfile.open(made) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    crates = {name for name in tracked("crates") if "/src/" in name or name.endswith("Cargo.toml")}
    assert names >= {*SOURCES, *crates, *tracked("python")}
    assert names - tracked() == {"PKG-INFO"}


def test_one_version_is_everywhere(wheel: Path) -> None:
    assert importlib.metadata.version("tierwise") == VERSION
    assert wheel.name.startswith(f"tierwise-{VERSION}-cp311-abi3-")


@pytest.mark.skipif(not shutil.which("strace"), reason="needs Debian's package strace")
def test_sqlite_is_compiled_with_the_flags_of_the_project() -> None:
    checked = [sys.executable, ROOT / "tools" / "check_sqlite.py"]
    subprocess.run(checked, check=True)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mmdebstrap"), reason="needs root and Debian's package mmdebstrap"
)
def test_a_newcomer_and_an_image_get_answers_without_a_compiler(wheel: Path) -> None:
    program = [sys.executable, ROOT / "compat" / "fresh_root.py", "install", "predict"]
    done = subprocess.run(
        [*program, "--dist", wheel.parent], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MB installed" in done.stdout and "\npredict: " in done.stdout
