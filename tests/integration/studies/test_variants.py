"""Variants of a study on engines that are here."""

from __future__ import annotations

import pytest

from support.study_texts import SWEPT
from tierwise.lab import studies as study
from tierwise.lab.studies.runner.engine_compatibility import restrict_to_supported
from tierwise.lab.studies.study import Overrides, Study, Sweep


@pytest.fixture
def chosen() -> Study:
    return study.parse_study(SWEPT, "s.toml")


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
