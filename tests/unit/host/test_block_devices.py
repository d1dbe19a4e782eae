"""Block devices of a machine on which others have their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tierwise.host import block_devices


def test_a_foreign_loop_file_of_any_name_hides_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_devices, "_BLOCKS", tmp_path)
    for name, backing in [
        ("loop0", b"/else/b\xe9.img"),
        ("loop1", b"/run/a.img"),
        ("loop2", b"/run/\xe9.img"),
    ]:
        (tmp_path / name / "loop").mkdir(parents=True)
        (tmp_path / name / "loop/backing_file").write_bytes(backing + b"\n")
    assert sorted(block_devices.loop_devices_below(Path("/run"))) == [Path("/dev/loop1"), Path("/dev/loop2")]
    assert block_devices.loop_devices_below(Path(os.fsdecode(b"/run/\xe9.img"))) == [Path("/dev/loop2")]
