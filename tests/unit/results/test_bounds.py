"""What no run can have measured is refused when results are read, with the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from support.results_factory import INFO, study_runs
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results import Counters, RunResult, UntracedIo, WaitShare
from tierwise.results.result_files import read_results, write_study_info


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"elapsed_s": -1.0}, "elapsed_s"),
        ({"transactions": -1}, "transactions"),
        ({"rate_per_s": -1.0}, "rate_per_s"),
        ({"machine": {"cores": 0}}, r"machine\.cores"),
        ({"waits": {"shares": {"cpu": {"share": -1.0, "sampling_error": 0.0}}}}, r"waits\.shares\.cpu.share"),
        (
            {"latency": {"all": study_runs()[0].latency["all"].model_dump() | {"p99_us": -5.0}}},
            r"latency\.all.p99_us",
        ),
        ({"cpu": {"engine_s": -1.0}}, r"cpu\.engine_s"),
        ({"counters": {"log_bytes": -1}}, r"counters\.log_bytes"),
        (
            {"io": {"log": study_runs()[0].io[Role.LOG].model_dump() | {"write_bytes": -1}}},
            r"io\.log\.write_bytes",
        ),
        ({"residency": {"log": -0.5}}, r"residency\.log"),
    ],
)
def test_a_figure_below_its_bound_is_refused(change: dict[str, Any], field: str, tmp_path: Path) -> None:
    run = json.loads(study_runs(repeats=1)[0].model_dump_json())
    for name, value in change.items():
        run[name] = {**run[name], **value} if isinstance(value, dict) else value
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps(run) + "\n", "utf-8")
    with pytest.raises(TierwiseError, match=rf"results\.jsonl:1: {field}: Input should be greater than"):
        read_results(file)


def test_runs_of_another_study_are_refused(tmp_path: Path) -> None:
    runs, file = study_runs(repeats=1), tmp_path / "results.jsonl"
    foreign = runs[1].model_copy(update={"study": "other"})
    file.write_text("".join(run.model_dump_json() + "\n" for run in (runs[0], foreign)), "utf-8")
    with pytest.raises(TierwiseError, match=f"run {foreign.run_id} is of study 'other', others are of"):
        read_results(file)
    with pytest.raises(TierwiseError, match=f"run {runs[0].run_id} is of study .*, others are of 'other'"):
        read_results(file, study="other")


def test_a_counter_that_was_reset_between_two_readings_is_unknown() -> None:
    before, after = (
        Counters(commits=10, pages_read=3, page_bytes=8192),
        Counters(commits=4, pages_read=5, page_bytes=8192),
    )
    assert after.since(before) == Counters(commits=None, pages_read=2, page_bytes=8192)


def test_what_is_untraced_may_be_negative() -> None:
    untraced = UntracedIo(device="own", reads=-1, writes=-2, flushes=None, read_bytes=-512, write_bytes=-1024)
    assert UntracedIo.model_validate_json(untraced.model_dump_json()) == untraced


def test_a_share_of_waits_above_one_is_refused() -> None:
    with pytest.raises(ValidationError, match="share"):
        WaitShare(share=7.0, sampling_error=0.0)


def test_results_of_before_with_the_space_of_the_database_are_read(tmp_path: Path) -> None:
    run = json.loads(study_runs(repeats=1)[0].model_dump_json())
    file = tmp_path / "results.jsonl"
    file.write_text(
        json.dumps(run | {"space": {"rows": 7, "reserved_bytes": 8192, "data_bytes": None}}) + "\n", "utf-8"
    )
    (result,) = read_results(file)
    assert "space" not in json.loads(result.model_dump_json())


def written(file: Path, *runs: RunResult) -> Path:
    file.write_text("".join(run.model_dump_json() + "\n" for run in runs), "utf-8")
    return file


@pytest.mark.parametrize(
    "change",
    [{}, {"run_id": "other"}, {"run_id": "other", "repeat": 9}, {"run_id": "other", "elapsed_s": None}],
)
def test_a_run_that_is_there_twice_is_refused_under_any_name(change: dict[str, Any], tmp_path: Path) -> None:
    runs = study_runs(repeats=2)
    again = runs[0].model_copy(update=change)
    with pytest.raises(TierwiseError, match=f"{again.run_id} is there twice|other is run {runs[0].run_id} "):
        read_results(written(tmp_path / "results.jsonl", *runs, again))


def test_a_rate_that_its_transactions_and_time_contradict_is_refused(tmp_path: Path) -> None:
    first, *rest = study_runs(repeats=2)
    wrong = first.model_copy(update={"rate_per_s": 2 * (first.rate_per_s or 0.0)})
    with pytest.raises(TierwiseError, match=rf"run {first.run_id}: rate_per_s is .* are .* a second"):
        read_results(written(tmp_path / "results.jsonl", wrong, *rest))


def test_a_repeat_that_ran_on_two_machines_is_refused(tmp_path: Path) -> None:
    first, *rest = study_runs(repeats=2)
    elsewhere = first.changed(machine=first.machine.changed(host="other"))
    with pytest.raises(TierwiseError, match=rf"the machine was other in run {first.run_id} and is synthetic"):
        read_results(written(tmp_path / "results.jsonl", elsewhere, *rest))
    failed = elsewhere.changed(status="failed")
    assert read_results(written(tmp_path / "results.jsonl", failed, *rest)) == [failed, *rest]


def test_a_start_without_its_time_zone_is_refused(tmp_path: Path) -> None:
    first, *rest = study_runs(repeats=2)
    naive = first.model_copy(update={"started_at": first.started_at.replace(tzinfo=None)})
    with pytest.raises(TierwiseError, match="started_at"):
        read_results(written(tmp_path / "results.jsonl", naive, *rest))


def test_runs_of_another_start_of_the_study_are_refused(tmp_path: Path) -> None:
    first, *rest = study_runs(repeats=2)
    other = first.model_copy(update={"study_seed": 7})
    with pytest.raises(TierwiseError, match="start of the study with seed 7, others are of one with seed 20"):
        read_results(written(tmp_path / "results.jsonl", *rest, other))


def test_a_study_is_not_resumed_over_the_results_of_another(tmp_path: Path) -> None:
    write_study_info(tmp_path / runner.STUDY_FILE, INFO)
    file, runs = tmp_path / runner.RESULTS_FILE, study_runs(repeats=2)
    written(file, *runs)
    assert runner.finished_runs_in(tmp_path) == runs
    written(file, *(run.model_copy(update={"study": "other"}) for run in runs))
    with pytest.raises(TierwiseError, match=f"of study 'other', others are of '{INFO.name}'"):
        runner.finished_runs_in(tmp_path)
    written(file, *(run.model_copy(update={"study_seed": 7}) for run in runs))
    with pytest.raises(TierwiseError, match="with seed 7, others are of one with seed 20"):
        runner.finished_runs_in(tmp_path)


def test_a_problem_of_several_lines_is_one_line(tmp_path: Path) -> None:
    failed = study_runs(repeats=1)[0].model_copy(
        update={"status": "failed", "problems": ["ERROR: full\r\n  DETAIL: no\u2028room\n"]}
    )
    (result,) = read_results(written(tmp_path / "results.jsonl", failed))
    assert result.problems == failed.changed().problems == ["ERROR: full DETAIL: no room"]
