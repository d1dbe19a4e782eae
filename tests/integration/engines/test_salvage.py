"""Steps after the death of a device, of each engine that is here."""

from __future__ import annotations

import pytest

from tierwise.lab import engines
from tierwise.model.errors import TierwiseError


@pytest.mark.parametrize("name", engines.engine_names())
def test_a_step_names_roles_of_its_engine_and_its_source(name: str) -> None:
    try:
        engine = engines.create_engine(name)
    except TierwiseError as error:
        pytest.skip(str(error))
    instructions = engine.guide()
    for step in instructions.salvage:
        assert set(step.roles) <= engine.roles and step.source
        assert step.program or step.settings or step.statements
    assert instructions.use.keys() <= engine.roles
