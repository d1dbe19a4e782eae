"""The Python API as another program sees it: its import, a recorder that cannot begin, the notebook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import tierwise as tw
from support.paths import ROOT


def test_importing_takes_no_time_and_changes_nothing() -> None:
    script = "import sys, logging; before = set(sys.modules); import tierwise; "
    script += "print(len([m for m in set(sys.modules) - before if m.startswith('tierwise')]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1, "a module of tierwise is imported before it is used"
    assert set(tw.__all__) == set(dir(tw))
    assert all(getattr(tw, name) is not None for name in tw.__all__)


def test_a_recorder_that_cannot_begin_raises_its_line(tmp_path: Path) -> None:
    with pytest.raises(tw.TierwiseError), tw.record(tmp_path / "out", pid=2**22 + 1):
        pass


def test_the_tour_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    notebook = nbformat.read(ROOT / "docs" / "tour.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert (tmp_path / "advice.html").exists()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert len(shown) >= 10
