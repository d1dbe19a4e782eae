"""Changed scenarios are checked, and answers that are kept are not replayed again."""

from __future__ import annotations

import pytest

from support.fake_replay import FakeReplay, predictor
from tierwise.model.errors import TierwiseError
from tierwise.predict import Scenario


def test_a_changed_scenario_is_checked() -> None:
    assert Scenario(cores=4).changed(clients=8) == Scenario(cores=4, clients=8)
    for wrong, named in (
        ({"clients": 0}, "clients"),
        ({"colour": 1}, "colour"),
        ({"placement": {"wal": "ram"}}, "wal"),
    ):
        with pytest.raises(TierwiseError, match=named):
            Scenario().changed(**wrong)


def test_an_answer_that_is_kept_is_replayed_once_whatever_is_asked_beside_it() -> None:
    fake = FakeReplay()
    asking = predictor(fake=fake)
    asking.replayer.remember()
    one, other = Scenario(placement={"log": "nvme-dc"}), Scenario(placement={"all": "nvme-dc"})
    (first,) = asking.predict([one])
    asked = fake.asked
    assert asking.predict([one, one]) == [first, first] and fake.asked == asked
    assert asking.predict([other, one])[1] == first and fake.asked == 2 * asked
