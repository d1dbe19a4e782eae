"""What is calibrated from errors, how they are scored, and what is said of them."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.fake_replay import FakeReplay, about, service_us
from support.paths import RECORDINGS
from support.validation_factory import TOML, pair, row
from tierwise import validation as validate
from tierwise.predict import Estimate, ModelError
from tierwise.predict.replayer import Replayer
from tierwise.report.accuracy.page import accuracy_page, summary_rows
from tierwise.report.charts import WIDE, to_svg
from tierwise.report.charts.accuracy import accuracy_chart
from tierwise.validation.answers import ANSWERS_FILE
from tierwise.validation.rows import append_row
from tierwise.validation.scores import crps, interval_score
from tierwise.validation.session import Place
from tierwise.validation.truth import truth_of

EXAMPLE = RECORDINGS / "keyed-update"

ROLES = ("log", "data", "index", "temp")
DEVICES = {
    "all-nvme": ("ssd-nvme-dc",) * 4,
    "all-7k2": ("hdd-7k2",) * 4,
    "log-nvme": ("ssd-nvme-dc", "hdd-7k2", "hdd-7k2", "hdd-7k2"),
}
ERRORS = {"pgbench": 1.04, "sysbench": 0.9}
"""How many times faster each family is measured than the fake predicts."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A round of two families with a fake recording in every block."""
    monkeypatch.setattr(Replayer, "open", lambda *_, **__: Replayer(FakeReplay()))
    monkeypatch.setattr("tierwise.validation.answers.Recording.open", lambda _: _Recording())
    monkeypatch.setattr("tierwise.validation.answers.model_name", lambda: "abc")
    spec_file = tmp_path / "cases.toml"
    spec_file.write_text(TOML, "utf-8")
    folder = tmp_path / "round"
    folder.mkdir()
    (folder / "spec.json").write_text(validate.load(spec_file).model_dump_json(), "utf-8")
    _plan(folder, "building")
    _rows(folder)
    return folder


class _Recording:
    about = about()
    warnings: tuple[str, ...] = ()


def _plan(folder: Path, round: str) -> None:
    plan = {"fingerprint": "x", "round": round, "model": "abc", "rotation": 0, "seed": 1}
    chosen = {"cases": ["pgbench", "sysbench", "restore"], "left_out": {"accounts-1": "is not installed"}}
    (folder / "plan.json").write_text(json.dumps(plan | chosen), "utf-8")


def _rows(folder: Path, **more: Any) -> None:
    for family, faster in ERRORS.items():
        for block in range(3):
            shared = {"case": family, "family": family, "block": block, **more}
            append_row(folder, row(placement="all-7k2", kind="recorded", **shared))
            Place(folder).recording(f"{family}/all-7k2/recorded-{block}").mkdir(parents=True)
            for name, devices in DEVICES.items():
                rate = 1e6 / service_us(dict(zip(ROLES, devices, strict=True))) * faster
                latency = {"p50_us": 4e6 / rate}
                append_row(folder, row(placement=name, rate_per_s=rate, latency_us=latency, **shared))


def _judged(folder: Path) -> tuple[validate.Accuracy, ModelError]:
    return validate.judge(validate.rounds_in(folder), str)


def test_intervals_know_the_errors_of_other_families(folder: Path) -> None:
    accuracy, calibrated = _judged(folder)
    assert len(accuracy.predictions) == 2 * 3 * 2
    assert len(accuracy.controls) == 2 * 3
    for one in accuracy.predictions:
        assert one.error == pytest.approx(1 / ERRORS[one.family] - 1, abs=0.005)
        # Fewer than ten errors of another family teach nothing: a guess of 20 % covers both.
        assert one.covered
    found = calibrated.find("postgres", "emulated→emulated", "rate")
    assert found is not None
    assert (found.cases, found.families) == (12, 2)
    assert found.half_width == pytest.approx(-math.log(0.9), abs=0.005)
    assert accuracy.left_out == {
        "building: accounts-1": "is not installed",
        "building: accounts-4": "not chosen for this round",
        "building: restore": "no run of it counts",
    }


def test_what_is_learnt_is_what_predictions_read(folder: Path, tmp_path: Path) -> None:
    _, calibrated = _judged(folder)
    file = tmp_path / "model_error.toml"
    file.write_text(validate.to_toml(calibrated), "utf-8")
    read = ModelError.read(file)
    assert [(one.path, one.what, one.cases) for one in read.errors] == [
        ("any", "rate", 12), ("any", "p50", 12),
        *[("emulated→emulated", "rate", 12), ("emulated→emulated", "p50", 12)] * 2,
    ]  # fmt: skip
    assert [one.engine for one in read.errors] == ["any"] * 4 + ["postgres"] * 2


def test_the_page_can_be_repeated_without_recordings(folder: Path, tmp_path: Path) -> None:
    accuracy, _ = _judged(folder)
    published = tmp_path / "docs"
    validate.publish(validate.rounds_in(folder), published)
    assert not (published / "building" / "recordings").exists()
    assert (published / "building" / ANSWERS_FILE).stat().st_size < 100_000
    again, _ = _judged(published)
    assert [one.model_dump() for one in again.pairs] == [one.model_dump() for one in accuracy.pairs]


def test_the_smallest_recordings_are_published_without_paths(folder: Path, tmp_path: Path) -> None:
    (data,) = validate.rounds_in(folder)
    first, second = (Place(folder).recording(row.run_id) for row in data.recorded[:2])
    for path in (first, second):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(EXAMPLE, path)
    (second / "more").write_bytes(bytes(1 << 20))
    (published,) = validate.publish([data], tmp_path / "docs", 1 << 20)
    kept = list((published / "recordings").rglob("about.json"))
    assert [path.parent.relative_to(published) for path in kept] == [first.relative_to(folder)]
    mounts = {device["mount"] for device in json.loads((EXAMPLE / "about.json").read_text())["devices"]}
    assert mounts - {"/", None}
    assert not [mount for mount in mounts - {"/", None} if mount in kept[0].read_text("utf-8")]


def test_two_rounds_stand_side_by_side_and_the_second_teaches_nothing(folder: Path, tmp_path: Path) -> None:
    _judged(folder)
    published = tmp_path / "docs"
    validate.publish(validate.rounds_in(folder), published)
    second = published / "prospective"
    second.mkdir()
    (second / "spec.json").write_text((folder / "spec.json").read_text("utf-8"), "utf-8")
    _plan(second, "prospective")
    _rows(second, round="prospective")
    accuracy, calibrated = _judged(published)
    assert {one.round for one in accuracy.pairs} == {"building", "prospective"}
    found = calibrated.find("postgres", "emulated→emulated", "rate")
    assert found is not None
    assert found.cases == 12
    page = accuracy_page(accuracy, [], None)
    assert page.index("## Seen while building") < page.index("## First run after the freeze")


@pytest.mark.usefixtures("drawn")
def test_the_page_says_what_was_found(folder: Path) -> None:
    accuracy, _ = _judged(folder)
    rows = validate.read_rows(folder)
    page = accuracy_page(accuracy, rows, "accuracy.svg")
    assert "over 12 predictions of 2 cases" in page
    assert "| pgbench | all-7k2 | log-nvme | 0 |" in page
    assert "| pgbench | all-7k2 | all-7k2 (control) | 0 |" in page
    assert "No such round has been run yet." in page
    assert "- building: accounts-1: is not installed" in page
    names = [cells[0] for cells in summary_rows(accuracy, "building")]
    assert names[:2] == ["all", "emulated→emulated"]
    assert names[-3:] == ["family pgbench", "family sysbench", "the recorded placement"]
    drawing = to_svg(accuracy_chart(accuracy.predictions, WIDE), "accuracy", "predicted")
    assert "Measured" in drawing


def test_a_summary_by_hand() -> None:
    pairs = [
        pair("a", 10.0, [10.0]),
        pair("b", 16.5, [15.0]),
        pair("c", 14.0, [28.0]),
        pair("d", None, [40.0]),
    ]
    found = validate.summary(pairs)
    assert (found.pairs, found.refused, found.ordered_pairs) == (3, 1, 2)
    assert found.median == pytest.approx(0.1)
    assert found.worst == pytest.approx(0.5)
    assert found.bias == pytest.approx(0.0)
    assert found.coverage == pytest.approx(2 / 3)
    assert found.order == pytest.approx(1 / 2)
    assert not found.passed


def test_bias_is_of_the_rate_also_where_times_are_measured() -> None:
    assert validate.summary([pair("a", 12.0, [10.0])]).bias == pytest.approx(1 / 1.2 - 1)
    assert validate.summary([pair("a", 12.0, [10.0], unit="transactions/s")]).bias == pytest.approx(0.2)


def test_pairs_in_order_differ_by_a_tenth_to_twice() -> None:
    def pairs(measured: float) -> list[validate.Pair]:
        return [pair("a", 1.0, [10.0]), pair("b", 2.0, [measured])]

    assert [validate.summary(pairs(one)).ordered_pairs for one in (10.5, 12.0, 19.0, 21.0)] == [0, 1, 1, 0]


def test_scores_by_hand() -> None:
    sure = Estimate(value=10.0, low=10 / 1.1, high=11.0)
    width = 2 * math.log(1.1)
    assert interval_score(sure, 10.5) == pytest.approx(width)
    assert interval_score(sure, 12.0) == pytest.approx(width + 40 * math.log(12 / 11))
    # Of a normal forecast at its median: sigma (2 phi(0) - 1 / sqrt(pi)).
    sigma = math.log(1.1) / 1.959964
    assert crps(sure, 10.0) == pytest.approx(sigma * 0.233695, rel=1e-4)
    assert crps(sure, 20.0) == pytest.approx(math.log(2) - sigma / math.sqrt(math.pi), rel=1e-3)


def test_errors_that_grow_with_the_distance_are_learnt_so() -> None:
    pairs = [
        pair("p", math.exp(error), [1.0], speedup=math.exp(far))
        for far in (-2.0, -1.0, 0.0, 1.0, 2.0)
        for error in (0.02 + 0.2 * max(far, 0.0), -0.02 - 0.2 * max(far, 0.0))
        for _ in range(4)
    ]
    calibrated = validate.calibrate(pairs, "2026-11-21").find("postgres", "emulated→emulated", "rate")
    assert calibrated is not None
    assert [calibrated.at(math.exp(far)) for far in (-3, 0, 2)] == pytest.approx([0.02, 0.02, 0.42], rel=0.02)


def test_a_family_of_many_predictions_does_not_decide_alone() -> None:
    many = [pair("p", 1.01, [1.0]) for _ in range(95)]
    few = [pair("p", 1.3, [1.0], family="sysbench") for _ in range(5)]
    calibrated = validate.calibrate([*many, *few], "2026-11-21").find("postgres", "emulated→emulated", "rate")
    assert calibrated is not None
    assert calibrated.half_width == pytest.approx(math.log(1.3), rel=0.01)


def test_paths_and_engines_are_learnt_apart_and_controls_not_at_all() -> None:
    pairs = [pair("p", 1.1, [1.0], path="real→emulated") for _ in range(10)]
    pairs += [pair("p", 1.2, [1.0], engine="mariadb") for _ in range(9)]
    pairs += [pair("r", 3.0, [1.0]) for _ in range(30)]
    calibrated = validate.calibrate(pairs, "2026-11-21")
    assert [(one.engine, one.path) for one in calibrated.errors] == [
        ("any", "any"),
        ("any", "real→emulated"),
        ("postgres", "real→emulated"),
    ]
    everywhere = calibrated.nearest("sqlite", "emulated→real", "rate")
    assert everywhere is not None and (everywhere.cases, everywhere.path) == (19, "any")


def test_few_errors_are_taken_to_be_alike() -> None:
    """A slope from a handful of distant predictions would make intervals of distant ones useless."""
    few = [pair(f"p{number}", 1.0 + number / 100, [1.0]) for number in range(15)]
    (calibrated,) = [one for one in validate.calibrate(few, "2026-11-21").errors if one.engine == "postgres"]
    assert (calibrated.per_faster, calibrated.per_slower) == (0.0, 0.0)


def test_the_control_workload_explains_what_it_can() -> None:
    def run(block: int, speed: float) -> validate.Row:
        control = [{"cpu_per_s": 600 * speed, "sync_per_s": 2000}] * 2
        return row(case=f"c{block % 8}", block=block, rate_per_s=1000 * speed, control=control)

    speeds = (1.0, 1.02, 0.97, 1.03, 0.99)
    truth = truth_of([run(block, speeds[(block // 8 + block) % 5]) for block in range(40)])
    assert truth.coefficient == pytest.approx(1.0)
    assert truth.raw is not None
    assert truth.adjusted is not None
    assert truth.raw.median > 0.015
    assert truth.adjusted.median == pytest.approx(0.0, abs=1e-9)
    assert truth.adjusted.passed


def test_nothing_compared_is_no_pass() -> None:
    assert not validate.summary([]).passed
    empty = validate.Accuracy(day="2026-11-21", runs=0, reproductions=[], pairs=[])
    assert "No such round has been run yet" in accuracy_page(empty, [], None)
