"""Mechanisms of the simulator that are switched off by name."""

from __future__ import annotations

import pytest

from support.paths import RECORDINGS
from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.predict.replayer import Replayer

RECORDING = RECORDINGS / "keyed-update"


def elapsed_s(*without: str) -> float:
    (outcome,) = Replayer.open(RECORDING, without=without).reproduce([0]).outcomes
    return outcome.elapsed_s


@pytest.fixture(scope="module")
def whole() -> float:
    return elapsed_s()


@pytest.mark.parametrize("mechanism", _core.Replay.mechanisms())
def test_work_goes_on_without_any_mechanism(mechanism: str, whole: float) -> None:
    assert whole / 3 < elapsed_s(mechanism) < whole * 3


@pytest.mark.parametrize("mechanism", ["emulated_path", "cold_cores"])
def test_what_is_switched_off_is_missed(mechanism: str, whole: float) -> None:
    assert elapsed_s(mechanism) != whole


def test_a_mechanism_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TierwiseError, match="no mechanism is called warp"):
        Replayer.open(RECORDING, without=["warp"])
