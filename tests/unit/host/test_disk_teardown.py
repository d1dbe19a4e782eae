"""What a killed server of an emulated disk leaves is put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.host.disk import disk_teardown


@pytest.mark.parametrize(("noted", "after"), [(True, "N"), (False, "Y")])
def test_the_kernel_s_switch_is_put_back_if_a_server_was_killed_at_its_mount(
    noted: bool, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = tmp_path / "enable_uring"
    switch.write_text("Y")
    monkeypatch.setattr(disk_teardown, "_URING_SWITCH", switch)
    if noted:
        (tmp_path / "enable_uring_was_off").touch()
    disk_teardown._restore_switch(tmp_path)
    assert switch.read_text() == after
    assert not (tmp_path / "enable_uring_was_off").exists()
