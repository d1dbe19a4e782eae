"""The recorder's programs in the kernel are what their source says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OBJECT = ROOT / "crates/recorder/bpf/tracer.bpf.o"


def compiler(text: bytes) -> str:
    """The version that an object or a compiler names."""
    named = re.search(rb"clang version (\d+)", text)
    return named[1].decode() if named else "unknown"


def test_the_object_is_compiled_from_the_source(tmp_path: Path) -> None:
    if shutil.which("clang") is None or shutil.which("llvm-strip") is None:
        pytest.skip("clang and llvm-strip, which compile it, are not installed")
    version = subprocess.run(["clang", "--version"], capture_output=True, check=True).stdout
    if compiler(version) != "14":
        pytest.skip(f"compiled by clang 14, and clang {compiler(version)} compiles otherwise")
    subprocess.run([ROOT / "tools/bpf.sh", tmp_path], check=True)
    assert (tmp_path / OBJECT.name).read_bytes() == OBJECT.read_bytes()
