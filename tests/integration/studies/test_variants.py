"""Variants of a study on engines that are here."""

from __future__ import annotations

import pytest

from tierwise.lab import studies as study
from tierwise.lab.studies.runner.compatibility import restrict_to_supported
from tierwise.lab.studies.study import Overrides, Study, Sweep

TEXT = """
name = "s"
question = "?"
engines = ["postgres", "sqlite"]
workload = "crud"
memory = "64M"
constants.size = 100
transactions = 10
repeats = 2
baseline = "a"
[devices.d]
profile = "ram"
[devices.e]
profile = "zero"
[placements.a]
default = "d"
[placements.b]
log = "e"
default = "d"
[settings.postgres]
work_mem = "4MB"
[sweep]
memory = ["64M", "1G"]
constants.n = [100, 2000]
variant = ["plain", "odd"]
[variants.plain]
[variants.odd]
settings.postgres.log_members = "2"
constants.size = 7
[quick]
scale = 0.5
seconds = 3
repeats = 1
placements = ["b"]
sweep = { memory = ["32M"] }
sizes.log = "16M"
"""


@pytest.fixture
def chosen() -> Study:
    return study.parse(TEXT, "s.toml")


def test_a_variant_that_is_another_engines_is_left_out(chosen: Study) -> None:
    members = Overrides(settings={"postgres": {"log_members": "2"}})
    larger = Overrides(constants={"size": 9})
    variants = {"plain": Overrides(), "members": members, "larger": larger}
    update = {"variants": variants, "sweep": Sweep(variant=list(variants))}
    both = chosen.model_copy(update=update)
    assert restrict_to_supported(both) == (both, {})
    left, skipped = restrict_to_supported(both.on_engine("sqlite"))
    assert skipped == {"variant members": "the same as plain on engine sqlite"}
    assert left.sweep.variant == ["plain", "larger"]
