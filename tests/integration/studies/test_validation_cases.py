"""The cases of validation that ship."""

from __future__ import annotations

import pytest

from tierwise.lab.validation.validation_case import cases_to_run
from tierwise.lab.validation.validation_round import estimated_time_s
from tierwise.lab.validation.validation_spec import load_validation


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.lab.validation.validation_case._missing", lambda _: None)


def test_shipped_cases_cover_what_was_promised(everything_installed: None) -> None:
    spec = load_validation()
    cases, left_out = cases_to_run(spec)
    held_back, _ = cases_to_run(spec, held_back=True)
    assert not left_out
    assert len(cases) >= 30 and len(held_back) >= 5
    assert len({case.name for case in [*cases, *held_back]}) == len(cases) + len(held_back)
    programs = {
        (case.family, case.spec.options.get("script", case.spec.options.get("mode", ""))) for case in cases
    }
    assert len(programs) >= 9
    assert {case.study.clients for case in cases} >= {1, 4, 8, 20, 50}
    paced = [case for case in cases if case.spec.load in {"think time", "arrivals"}]
    of_roles = [case for case in cases if not case.spec.selected and not any(case.changed.values())]
    assert 3 * len(paced) >= len(of_roles)
    recorded = {place for case in cases for place in case.recorded}
    assert recorded == {"own", "all-nvme", "all-gp3", "all-7k2"}
    assert all(len(case.placements) >= 3 for case in cases)
    assert {case.spec.caches for case in cases} == {"warm", "cold"}
    untouched = {case.family for case in held_back} - {case.family for case in cases}
    assert untouched == {"duckdb-tpch"}, "families that a building round never meets"
    quick, _ = cases_to_run(spec, spec.quick)
    assert len(quick) == 4
    of_30_s = 30 / len(cases) * sum(estimated_time_s(case, spec, []) for case in cases)
    assert of_30_s < 4 * 3600
