"""Sweeps, variants and scales of studies: what they change, and in which order they run."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from support.commands import tierwise
from support.study_texts import SWEPT
from tierwise.lab import studies as study
from tierwise.lab.studies.runner.engine_compatibility import restrict_to_supported
from tierwise.lab.studies.study import (
    Overrides,
    Study,
    Sweep,
    plan_runs,
    study_at_point,
    sweep_points,
    swept_values,
)
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role


@pytest.fixture
def chosen() -> Study:
    return study.parse_study(SWEPT, "s.toml")


def test_every_point_runs_once_in_each_block(chosen: Study) -> None:
    plans = plan_runs(chosen, 5)
    assert len(plans) == 2 * 2 * 8
    points = Counter((plan.repeat, plan.placement.name, *plan.setting.values()) for plan in plans)
    assert set(points.values()) == {1}
    assert len({plan.run_id for plan in plans}) == len(plans)
    assert plans[0].setting.keys() == {"memory", "constants.n", "variant"}
    assert plans == plan_runs(chosen, 5)


def test_a_point_is_the_study_with_its_values(chosen: Study) -> None:
    point = study_at_point(chosen, {"memory": "1G", "constants.n": "2000", "variant": "odd"})
    assert point.memory == 1 << 30
    assert point.constants == {"size": 7, "n": 2000}
    assert point.settings["postgres"] == {"work_mem": "4MB", "log_members": "2"}
    assert study_at_point(chosen, {}) == chosen


def test_an_installed_engine_takes_the_settings_of_the_packaged_one(chosen: Study) -> None:
    own = {"postgres": {"work_mem": "1MB"}, "postgres-system": {"work_mem": "2MB", "log_members": "1"}}
    study = chosen.model_copy(update={"settings": {"postgres": {"work_mem": "1MB"}}})
    both = chosen.model_copy(update={"settings": own})
    assert study.settings_of("postgres-system") == {"work_mem": "1MB"}
    assert both.settings_of("postgres-system") == {"work_mem": "2MB", "log_members": "1"}
    # What a variant or an option gives goes before what the study gives, whichever of the two names they use.
    late = both.with_overrides(Overrides(settings={"postgres": {"work_mem": "4MB"}}))
    assert late.settings_of("postgres-system") == {"work_mem": "4MB", "log_members": "1"}
    assert late.settings_of("sqlite") == {}


def test_one_at_a_time_varies_each_setting_alone() -> None:
    swept = sweep_points(
        Sweep(memory=["1M", "2M"], parallelism=[1, 2, 4], design="one-at-a-time"),
    )
    pairs = [tuple(point.values()) for point in swept]
    assert pairs == [("1M", "1"), ("2M", "1"), ("1M", "2"), ("1M", "4")]
    assert sweep_points(Sweep()) == [{}]


def test_quick_changes_what_it_gives_and_nothing_else(chosen: Study) -> None:
    quick = chosen.with_overrides(chosen.quick)
    assert (quick.scale, quick.seconds, quick.transactions, quick.repeats) == (0.5, 3, None, 1)
    assert list(quick.placements) == ["b"] and quick.baseline == "b"
    assert swept_values(quick.sweep) == {"memory": ["32M"]}
    assert quick.size_bytes(Role.LOG) == 16 << 20
    assert quick.settings == chosen.settings and quick.constants == chosen.constants
    assert chosen.with_overrides(Overrides()) == chosen


def test_the_first_engine_runs_unless_another_is_asked_for(chosen: Study) -> None:
    assert {plan.engine for plan in plan_runs(chosen, 1)} == {"postgres"}
    assert {plan.engine for plan in plan_runs(chosen.on_engine("sqlite"), 1)} == {"sqlite"}


def test_scales_that_are_not_used_do_not_hinder_resuming(chosen: Study) -> None:
    assert chosen.model_copy(update={"quick": Overrides()}).fingerprint() == chosen.fingerprint()
    assert chosen.with_overrides(chosen.quick).fingerprint() != chosen.fingerprint()
    assert chosen.on_engine("sqlite").fingerprint() != chosen.fingerprint()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('["64M", "1G"]', '["1G", "64M"]', "sweep.memory"),
        ('["64M", "1G"]', '["much"]', "sweep.memory"),
        ('"plain", "odd"', '"plain", "even"', "sweep.variant names 'even'"),
        ('placements = ["b"]', 'placements = ["c"]', "quick.placements.c"),
        ("repeats = 2", 'repeats = 2\nmemory = "none"', "memory: size: 'none'"),
        ("[quick]", '[[paper]]\nplacement = "a"\nsetting = { x = "1" }\nwhat = "rate"\nvalue = 1\nunit = ""\n'
         'source = "?"\n[quick]', "paper.0.setting names 'x'"),
    ],
)  # fmt: skip
def test_errors_name_file_and_field(old: str, new: str, named: str) -> None:
    with pytest.raises(TierwiseError) as caught:
        study.parse_study(SWEPT.replace(old, new), "s.toml")
    assert "s.toml" in str(caught.value)
    assert named in str(caught.value)


def test_an_unknown_placement_lists_the_known_ones(chosen: Study) -> None:
    with pytest.raises(TierwiseError, match="no placement 'c': use a, b"):
        chosen.with_placements(["c"])


@pytest.mark.parametrize("name", study.study_names())
def test_shipped_scales_are_valid(name: str) -> None:
    loaded = study.load_study(name)
    for overrides in (loaded.quick, loaded.paper_scale):
        changed = loaded.with_overrides(overrides)
        assert plan_runs(changed, 1)
    assert len(plan_runs(loaded.with_overrides(loaded.quick), 1)) <= len(plan_runs(loaded, 1))


def test_fifteen_studies_are_of_the_papers() -> None:
    assert len([name for name in study.study_names() if study.load_study(name).source is not None]) == 15


def test_the_only_variant_left_is_the_study(chosen: Study) -> None:
    twins = {
        "one": Overrides(constants={"size": 9}),
        "two": Overrides(constants={"size": 9}, settings={"postgres": {"log_members": "2"}}),
    }
    both = chosen.model_copy(update={"variants": twins, "sweep": Sweep(variant=list(twins))})
    left, skipped = restrict_to_supported(both.on_engine("sqlite"))
    assert list(skipped) == ["variant two"]
    assert (left.sweep.variant, left.constants["size"]) == ([], 9)
    assert all(plan.setting == {} for plan in plan_runs(left, 1))


TWO_CLIENTS = """
name = "clients"
question = "?"
engines = ["sqlite"]
workload = "single_commit"
seconds = 1
repeats = 1
baseline = "one"
[devices.own]
path = "/own"
[placements.one]
default = "own"
[sweep]
clients = [1, 2]
variant = ["small", "large"]
constants = { accounts = [10, 20] }
[variants.small]
[variants.large]
scale = 2
"""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("repeats = 1", "repeats = 1\nclients = 4", "s.toml: clients: sweep.clients gives"),
        ("scale = 2", "clients = 4", "variants.large.clients: sweep.clients gives"),
        ("scale = 2", "[quick]\nclients = 4", "quick: clients: sweep.clients gives"),
        (
            "repeats = 1",
            "repeats = 1\nconstants.accounts = 5",
            "constants.accounts: sweep.constants.accounts",
        ),
        ("scale = 2", "constants.accounts = 5", "variants.large.constants.accounts: sweep.constants.acc"),
        ("scale = 2", "[quick]\nplacements = []", "quick.placements: "),
    ],
)
def test_a_value_that_is_swept_is_not_given_as_well(old: str, new: str, named: str) -> None:
    with pytest.raises(TierwiseError, match=re.escape(named)):
        study.parse_study(TWO_CLIENTS.replace(old, new), "s.toml")


def test_a_sweep_of_one_scale_replaces_the_value_of_the_study() -> None:
    fields = "repeats = 1\nclients = 4\nconstants.accounts = 5"
    text = TWO_CLIENTS.partition("[sweep]")[0].replace("repeats = 1", fields)
    swept = "sweep = { clients = [1, 2], constants = { accounts = [10] } }"
    chosen = study.parse_study(f"{text}[quick]\n{swept}", "s.toml")
    quick = chosen.with_overrides(chosen.quick)
    runs = [study_at_point(quick, point) for point in sweep_points(quick.sweep)]
    assert [(run.clients, run.constants) for run in runs] == [(1, {"accounts": 10}), (2, {"accounts": 10})]


def test_the_clients_of_a_sweep_are_not_overridden_in_silence(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TWO_CLIENTS.replace("/own", str(tmp_path)), "utf-8")
    shown = tierwise("study", "run", str(file), "--dry-run", "--output", str(tmp_path / "results"))
    assert shown.returncode == 0 and "clients as swept" in shown.stdout, shown
    assert "constants.accounts" in shown.stdout and "10, 20" in shown.stdout
    refused = tierwise("study", "run", str(file), "--dry-run", "--clients", "9")
    assert "study clients: clients: sweep.clients gives its values" in refused.stderr
