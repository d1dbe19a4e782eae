"""The ledger: identities of processes, entries, directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.host import ledger, processes
from tierwise.model.errors import TierwiseError


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIERWISE_RUN_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def test_an_identity_is_not_fooled_by_a_pid_used_again() -> None:
    mine = ledger.Identity.mine()
    assert mine.alive
    assert not ledger.Identity(mine.pid, mine.start_ticks + 1, mine.boot_id).alive
    assert not ledger.Identity(mine.pid, mine.start_ticks, "another boot").alive


def test_entries_are_unique_and_survive_updates() -> None:
    entry = ledger.add("disk", "a", home="/x")
    with pytest.raises(TierwiseError, match="disk 'a' exists"):
        ledger.add("disk", "a")
    entry.update(more=1)
    assert [entry.facts for entry in ledger.entries("disk")] == [{"home": "/x", "more": 1}]
    entry.remove()
    assert ledger.entries() == []


def test_a_program_that_is_not_there_is_named_and_leaves_nothing() -> None:
    with pytest.raises(TierwiseError, match="no-such-program is not a program"):
        processes.start("x", ["no-such-program"])
    assert ledger.entries() == []


def test_a_directory_that_cannot_be_made_leaves_no_entry(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="can be written"):
        ledger.directory("x", parent=tmp_path / "missing")
    assert ledger.entries() == []
