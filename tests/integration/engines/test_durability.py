"""Ways to commit, of each engine that is here."""

from __future__ import annotations

import pytest

from tierwise.lab import engines
from tierwise.model.errors import TierwiseError


@pytest.mark.parametrize("name", engines.engine_names())
def test_every_engine_has_one_durable_setting_first(name: str) -> None:
    try:
        settings = engines.create_engine(name).durability()
    except TierwiseError as error:
        pytest.skip(str(error))
    assert [setting.durable for setting in settings] == [True] + [False] * (len(settings) - 1)
    for setting in settings:
        engines.create_engine(name, dict(setting.settings))
