"""The answer must be true for any outcome of a study."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from support.outcomes import OUTCOMES
from support.results_factory import INFO, PLACEMENTS, Make, run, study_runs
from tierwise.lab.analysis.study_answer import StudyAnswer, build_study_answer
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.statistics import RatioVerdict
from tierwise.results import ColdStart, PaperValue, RunResult, WarmFile


def only(answer: StudyAnswer) -> Any:
    (comparison,) = answer.comparisons
    return comparison


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_words(outcome: str, snapshot: SnapshotAssertion) -> None:
    words = only(build_study_answer(OUTCOMES[outcome], INFO)).words
    assert [words.headline, *words.caveats] == snapshot


def test_whole_answer(snapshot: SnapshotAssertion) -> None:
    dumped = build_study_answer(study_runs(), INFO).model_dump(mode="json", exclude={"study": True})
    assert rounded(dumped) == snapshot


def rounded(value: Any) -> Any:
    """Four digits, so that a numpy that rounds otherwise changes nothing."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def test_no_run_at_all_is_an_error() -> None:
    with pytest.raises(TierwiseError, match="no finished run"):
        build_study_answer([], INFO)


def test_speedup_is_baseline_over_placement() -> None:
    rows = {row.placement: row for row in only(build_study_answer(study_runs(noise=1e-9), INFO)).rows}
    assert rows["log-ssd"].speedup.estimate == pytest.approx(41.9 / 5.31, rel=1e-6)
    assert rows["all-ssd"].further.estimate == pytest.approx(5.31 / 5.24, rel=1e-6)
    assert rows["all-hdd"].speedup is None
    assert [row.placement for row in rows.values()] == INFO.placements


def test_unequal_work_is_compared_by_rate() -> None:
    runs = [
        run(Make("all-hdd", 60.0, 1, 1, transactions=6_000)),
        run(Make("all-hdd", 60.0, 2, 3, transactions=6_060)),
        run(Make("log-ssd", 60.0, 1, 2, transactions=60_000)),
        run(Make("log-ssd", 60.0, 2, 4, transactions=60_600)),
    ]
    comparison = only(build_study_answer(runs, INFO))
    assert comparison.measure == "rate"
    assert comparison.rows[1].speedup.estimate == pytest.approx(10, rel=0.01)


def test_invalid_and_failed_runs_count_for_nothing() -> None:
    absurd = run(Make("log-ssd", 9_999.0, 9, 16, status="invalid", problems=["too late"]))
    broken = run(Make("log-ssd", 1.0, 10, 17, status="failed", problems=["died"]))
    plain, more = (only(build_study_answer(study_runs() + extra, INFO)) for extra in ([], [absurd, broken]))
    assert more.rows[1].speedup == plain.rows[1].speedup
    assert (more.rows[1].summary.ok, more.rows[1].summary.invalid, more.rows[1].summary.failed) == (5, 1, 1)
    assert {left.status for left in more.validity.left_out} == {"invalid", "failed"}
    assert "1 failed and 1 invalid" in more.words.caveats[0]


def test_what_stayed_warm_is_a_caveat() -> None:
    cold = ColdStart(dropped="own files", remounted=[Role.LOG])
    file = WarmFile(role=Role.DATA, file="ibdata1", resident_bytes=4 << 20)
    starts = {
        "all-hdd": cold,
        "log-ssd": ColdStart(
            dropped="whole machine", not_remounted={Role.LOG: "in use by 12 (bash)"}, warm=[file]
        ),
    }
    before = study_runs()
    runs = [
        study_run.model_copy(update={"cold_start": starts.get(study_run.placement)}) for study_run in before
    ]
    plain, after = build_study_answer(before, INFO), build_study_answer(runs, INFO)
    *others, caveat = only(after).words.caveats
    assert others == only(plain).words.caveats
    assert caveat == (
        f"5 of {len(runs)} runs did not start cold: the disk of log was not unmounted (in use by 12 (bash)): "
        "its inodes and directories stayed in memory; 4,096 KiB of ibdata1 (data) stayed in the page cache."
    )
    assert plain.conditions.facts["Caches before the warm-up"] == ["cold"]
    assert set(after.conditions.facts["Caches before the warm-up"]) == {
        "cold",
        "cold, own files dropped",
        "cold, whole machine dropped",
    }


def test_engines_and_settings_are_compared_apart() -> None:
    runs = [*study_runs(setting={"clients": "1"}), *study_runs(setting={"clients": "10"})]
    runs += study_runs(engine="mariadb")
    answer = build_study_answer(runs, INFO)
    assert [comparison.label for comparison in answer.comparisons] == [
        "mariadb",
        "postgres, clients 1",
        "postgres, clients 10",
    ]
    assert answer.headline.count("Move the log first.") == 3


def test_same_real_directory_is_the_same_device() -> None:
    def on_own_storage(run_result: RunResult) -> RunResult:
        real = {"kind": "real", "profile": None, "path": "/srv/own", "deadline_overrun": None}
        return run_result.model_copy(
            update={"devices": [d.model_copy(update=real) for d in run_result.devices]}
        )

    comparison = only(build_study_answer([on_own_storage(study_run) for study_run in study_runs()], INFO))
    assert not any(row.moved for row in comparison.rows)
    assert "same devices" in comparison.words.caveats[-1]


def test_paper_is_compared_ratio_by_ratio_in_its_own_unit() -> None:
    extra = PaperValue(placement="all-hdd", what="mood", value=3, unit="smiles", source="nobody")
    info = INFO.model_copy(update={"paper": [*INFO.paper, extra]})
    rows = {
        (row.what, row.placement): row for row in only(build_study_answer(study_runs(noise=1e-9), info)).paper
    }
    elapsed = rows["elapsed", "log-ssd"]
    assert elapsed.paper_ratio == pytest.approx(42.18 / 34.22)
    assert elapsed.our_ratio == pytest.approx(41.9 / 5.31, rel=1e-6)
    assert elapsed.agreement == pytest.approx((41.9 / 5.31) / (42.18 / 34.22), rel=1e-6)
    assert rows["log wait share", "all-hdd"].our_value == pytest.approx(82.0)
    assert rows["mood", "all-hdd"].our_value is None


def test_conditions_tell_what_differed() -> None:
    runs = study_runs()
    engine = runs[3].engine
    other = engine.model_copy(update={"settings": engine.settings | {"fsync": "off", "port": "5433"}})
    runs[3] = runs[3].model_copy(update={"engine": other})
    conditions = build_study_answer(runs, INFO).conditions
    (setting,) = conditions.settings
    assert setting.varied == {"fsync": ["on", "off"], "port": ["(not set)", "5433"]}
    assert setting.common["shared_buffers"] == "512MB"
    assert (conditions.planned, conditions.finished) == (15, 15)


run_strategy = st.builds(
    Make,
    placement=st.sampled_from(list(PLACEMENTS)),
    elapsed_s=st.floats(0.5, 500),
    repeat=st.integers(1, 9),
    order=st.integers(1, 99),
    status=st.sampled_from(["ok", "ok", "ok", "invalid", "failed"]),
    problems=st.sampled_from([(), ("a problem",)]),
    transactions=st.sampled_from([5_000, 5_000, 5_001]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(run_strategy, min_size=1, max_size=25))
def test_never_claims_what_the_intervals_do_not_show(makes: list[Make]) -> None:
    comparison = only(build_study_answer([run(make) for make in makes], INFO))
    rows = {row.placement: row for row in comparison.rows}
    text = " ".join([comparison.words.headline, *comparison.words.caveats])
    assert comparison.words.finding.endswith(".") and "None" not in text and "nan" not in text
    if comparison.first is None:
        assert not any(row.verdict is RatioVerdict.FASTER for row in rows.values())
        assert not comparison.words.advice.startswith("Move")
    else:
        first = rows[comparison.first]
        assert first.speedup.low > 1 and first.summary.ok >= 2 and rows["all-hdd"].summary.ok >= 2
    assert comparison.validity.valid + len(comparison.validity.left_out) == len(makes)


@pytest.mark.parametrize(
    ("name", "value", "cached", "expected"),
    [
        ("wal_sync_method", "open_datasync", True, True),
        ("wal_sync_method", "open_datasync", False, False),
        ("wal_sync_method", "fdatasync", True, False),
        ("innodb_flush_method", "O_DSYNC", True, True),
        ("innodb_flush_method", "O_DIRECT", True, False),
    ],
)
def test_writes_through_an_emulated_disk_with_a_cache_are_named(
    name: str, value: str, cached: bool, expected: bool
) -> None:
    def with_setting(run_result: RunResult) -> RunResult:
        engine = run_result.engine.model_copy(update={"settings": {name: value}})
        devices = [device.changed(write_cache=cached) for device in run_result.devices]
        return run_result.model_copy(update={"engine": engine, "devices": devices})

    caveats = only(
        build_study_answer([with_setting(study_run) for study_run in study_runs()], INFO)
    ).words.caveats
    assert [f"{name} = {value}" in text and "FUA" in text for text in caveats].count(True) == int(expected)
