"""An interrupt neither leaves a temporary directory nor loses a recording that is complete."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tierwise.host import ledger
from tierwise.host.interrupts import deferred_interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_waits_until_the_end(number: signal.Signals) -> None:
    before = signal.signal(number, signal.default_int_handler)
    done = []
    try:
        with pytest.raises(KeyboardInterrupt), deferred_interrupts():
            with deferred_interrupts():
                signal.raise_signal(number)
                done.append("inner")
            done.append("outer")
        assert done == ["inner", "outer"]
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_leaves_no_temporary_directory(
    tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first Ctrl-C of a recording that was just complete left its directory in the ledger."""
    remove = ledger.remove_directory

    def interrupted(*arguments: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(*arguments)

    monkeypatch.setattr(ledger, "remove_directory", interrupted)
    with pytest.raises(KeyboardInterrupt), ledger.make_directory("tierwise-spool", parent=tmp_path):
        pass
    assert not list(tmp_path.iterdir())
    assert not ledger.entries()
