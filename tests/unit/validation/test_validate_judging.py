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
from support.validation_factory import TOML, measured, pair, row
from tierwise.lab.report.accuracy_report import accuracy_chart, accuracy_page, summary_rows
from tierwise.lab.validation import measured_rates
from tierwise.lab.validation.calibration import calibrate_model_error, calibration_toml
from tierwise.lab.validation.prediction_accuracy import (
    JudgedRecording,
    PredictionAccuracy,
    PredictionPair,
    count_verdicts,
    decision_regrets,
    interval_score,
    small_regret_share,
)
from tierwise.lab.validation.prediction_accuracy import summarise_pairs as summed
from tierwise.lab.validation.recording_answers import ANSWERS_FILE
from tierwise.lab.validation.round_judging import judge_rounds, publish_rounds, rounds_in
from tierwise.lab.validation.slot_rows import append_slot_row, read_slot_rows, recording_folder_of
from tierwise.lab.validation.validation_spec import load_validation
from tierwise.predict import Estimate, ModelError
from tierwise.predict.model_error import CalibratedError
from tierwise.predict.replayer import Replayer
from tierwise.report.charts import WIDE, to_svg

EXAMPLE = RECORDINGS / "keyed-update"

ROLES = ("log", "data", "index", "temp")
DEVICES = {
    "all-nvme": ("ssd-nvme-dc",) * 4,
    "all-7k2": ("hdd-7k2",) * 4,
    "log-nvme": ("ssd-nvme-dc", "hdd-7k2", "hdd-7k2", "hdd-7k2"),
}
CASES = {"accounts-4": ("pgbench", 1.04), "restore": ("postgres-jobs", 0.9)}
"""Case -> family, and how many times faster it is measured than the fake predicts."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A round of two families with a fake recording in three blocks."""
    monkeypatch.setattr(Replayer, "open", lambda *_, **__: Replayer(FakeReplay()))
    monkeypatch.setattr("tierwise.lab.validation.recording_answers.Recording.open", lambda _: _Recording())
    monkeypatch.setattr("tierwise.lab.validation.recording_answers.model_version", lambda: "abc")
    spec_file = tmp_path / "cases.toml"
    spec_file.write_text(TOML, "utf-8")
    folder = tmp_path / "round"
    folder.mkdir()
    (folder / "spec.json").write_text(load_validation(spec_file).model_dump_json(), "utf-8")
    _plan(folder, "building")
    _rows(folder)
    return folder


class _Recording:
    about = about()
    warnings: tuple[str, ...] = ()


def _plan(folder: Path, round: str) -> None:
    plan = {"fingerprint": "x", "round": round, "model": "abc", "seed": 1}
    chosen = {"cases": [*CASES, "accounts-1"], "left_out": {"shell": "is not installed"}}
    (folder / "plan.json").write_text(json.dumps(plan | chosen), "utf-8")


def _rows(folder: Path, **more: Any) -> None:
    for case, (family, faster) in CASES.items():
        for block in range(3):
            drift = 1 + 0.1 * block
            shared: dict[str, Any] = {"case": case, "family": family, "block": block, **more}
            for name, devices in DEVICES.items():
                rate = 1e6 / service_us(dict(zip(ROLES, devices, strict=True))) * faster
                latency = {"p50_us": 4e6 / rate}
                append_slot_row(folder, row(placement=name, rate=rate * drift, latency_us=latency, **shared))
            slow = 1e6 / service_us(dict(zip(ROLES, DEVICES["all-7k2"], strict=True))) * faster
            for kind in ("beside", "recorded", "beside"):
                append_slot_row(folder, row(placement="all-7k2", kind=kind, rate=slow, **shared))
            recording_folder_of(folder, row(placement="all-7k2", kind="recorded", **shared)).mkdir(
                parents=True
            )


def _judged(folder: Path) -> tuple[PredictionAccuracy, ModelError]:
    return judge_rounds(rounds_in(folder), str)


def test_a_prediction_meets_the_ratio_of_blocks_times_the_rate_beside_the_recording(folder: Path) -> None:
    accuracy, _ = _judged(folder)
    assert len(accuracy.predictions) == 2 * 3 * 2
    assert len(accuracy.controls) == 2 * 3
    for judged in accuracy.pairs:
        assert judged.error == pytest.approx(1 / CASES[judged.case][1] - 1, abs=0.005), (
            "drift over blocks is no error"
        )
        assert judged.measured.half_width < 1e-5
    assert all(control.ratio.value == 1.0 for control in accuracy.controls)
    spreads = [measured.spread for each in accuracy.rates["building"].values() for measured in each.values()]
    assert min(spreads) > 0.05, "the rates themselves do drift"


def test_intervals_know_the_errors_of_other_families(folder: Path) -> None:
    accuracy, calibrated = _judged(folder)
    # Fewer than ten errors of another family teach nothing: a guess of 20 % covers both.
    assert all(prediction.covered for prediction in accuracy.predictions)
    assert calibrated.find("postgres", "emulated→emulated", "rate") is None, "two cases are too few"
    entry = calibrated.find("any", "any", "rate")
    assert entry is not None
    assert (entry.cases, entry.families) == (2, 2)
    assert entry.half_width == pytest.approx(-math.log(0.9), abs=0.005)
    assert accuracy.left_out == {
        "building: shell": "is not installed",
        "building: accounts-1": "fewer than two blocks were measured",
    }


def test_what_is_learnt_is_what_predictions_read(folder: Path, tmp_path: Path) -> None:
    _, calibrated = _judged(folder)
    file = tmp_path / "model_error.toml"
    file.write_text(calibration_toml(calibrated), "utf-8")
    read = ModelError.read(file)
    assert [(error.engine, error.path, error.what, error.cases) for error in read.errors] == [
        ("any", "any", "rate", 2)
    ]


def test_the_page_can_be_repeated_without_recordings(folder: Path, tmp_path: Path) -> None:
    accuracy, _ = _judged(folder)
    published = tmp_path / "docs"
    publish_rounds(rounds_in(folder), published)
    assert not (published / "building" / "recordings").exists()
    assert (published / "building" / ANSWERS_FILE).stat().st_size < 100_000
    again, _ = _judged(published)
    assert [pair.model_dump() for pair in again.pairs] == [pair.model_dump() for pair in accuracy.pairs]


def test_the_smallest_recordings_are_published_without_paths(folder: Path, tmp_path: Path) -> None:
    (data,) = rounds_in(folder)
    first, second = (recording_folder_of(folder, row) for row in list(data.recorded.values())[:2])
    for path in (first, second):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(EXAMPLE, path)
    (second / "more").write_bytes(bytes(1 << 20))
    (published,) = publish_rounds([data], tmp_path / "docs", 1 << 20)
    kept = list((published / "recordings").rglob("about.json"))
    assert [path.parent.relative_to(published) for path in kept] == [first.relative_to(folder)]
    mounts = {device["mount"] for device in json.loads((EXAMPLE / "about.json").read_text())["devices"]}
    assert mounts - {"/", None}
    assert not [mount for mount in mounts - {"/", None} if mount in kept[0].read_text("utf-8")]


def test_two_rounds_stand_side_by_side_and_the_second_teaches_nothing(folder: Path, tmp_path: Path) -> None:
    _judged(folder)
    published = tmp_path / "docs"
    publish_rounds(rounds_in(folder), published)
    second = published / "prospective"
    second.mkdir()
    (second / "spec.json").write_text((folder / "spec.json").read_text("utf-8"), "utf-8")
    _plan(second, "prospective")
    _rows(second, round="prospective")
    accuracy, calibrated = _judged(published)
    assert {pair.round for pair in accuracy.pairs} == {"building", "prospective"}
    entry = calibrated.find("any", "any", "rate")
    assert entry is not None
    assert entry.cases == 2
    assert accuracy.agreement == (4, 4)
    page = accuracy_page(accuracy, [], None)
    assert page.index("## Seen while building") < page.index("## First run after the freeze")
    assert "Two rounds measured 4 ratios of rates; 4 agree within their intervals." in page


def test_a_prospective_round_alone_has_the_intervals_of_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intervals were calibrated from its own other families, or were a guess of 20 %."""
    error = CalibratedError(
        engine="any",
        path="any",
        what="rate",
        changes=["placement"],
        cases=30,
        families=5,
        half_width=0.5,
        bias=0.0,
        calibrated="2026-11-01",
    )
    monkeypatch.setattr(ModelError, "read", lambda: ModelError(errors=[error]))
    _plan(folder, "prospective")
    (folder / "slots.jsonl").unlink()
    shutil.rmtree(folder / "recordings")
    _rows(folder, round="prospective")
    accuracy, calibrated = _judged(folder)
    for prediction in accuracy.predictions:
        assert prediction.predicted is not None
        assert prediction.predicted.high >= 1.6 * prediction.predicted.value
    assert not calibrated.errors


def test_a_case_whose_recorded_placement_was_not_reached_is_left_out(folder: Path) -> None:
    rows = (folder / "slots.jsonl").read_text("utf-8").splitlines()
    reached = [row for row in rows if '"restore"' not in row or '"all-7k2"' not in row]
    (folder / "slots.jsonl").write_text("\n".join(reached) + "\n", "utf-8")
    accuracy, _ = _judged(folder)
    assert {pair.case for pair in accuracy.pairs} == {"accounts-4"}


@pytest.mark.usefixtures("drawn")
def test_the_page_says_what_was_found(folder: Path) -> None:
    accuracy, _ = _judged(folder)
    rows = read_slot_rows(folder)
    page = accuracy_page(accuracy, rows, "accuracy.svg")
    assert "Over 12 predictions of 2 cases" in page
    assert "| accounts-4 | all-7k2 | log-nvme |" in page
    assert "| accounts-4 | all-7k2 | all-7k2 (control) |" in page
    assert "| pairs of placements in order | at least 90\u00a0% |" in page
    assert "**missed**" in page and not accuracy.passed
    assert "No such round has been run yet." in page
    assert "- building: shell: is not installed" in page
    names = [cells[0] for cells in summary_rows(accuracy, "building")]
    assert names[:3] == ["all", "load: writes", "load: job"]
    assert names[-3:] == ["family pgbench", "family postgres-jobs", "the recorded placement"]
    drawing = to_svg(accuracy_chart(accuracy.predictions, WIDE), "accuracy", "predicted")
    assert "Measured" in drawing


def test_a_ratio_is_taken_within_blocks_and_only_of_whole_ones() -> None:
    rows = [
        row(placement=name, block=block, rate=rate * drift)
        for block, drift in enumerate((1.0, 1.5, 0.7))
        for name, rate in (("a", 300.0), ("b", 100.0))
    ]
    rows += [row(placement="a", block=3, rate=9.0), row(placement="b", block=4, rate=1.0, status="failed")]
    blocks = measured_rates.complete_blocks(rows, ["a", "b"])
    assert list(blocks) == [(0, 0), (0, 1), (0, 2)]
    ratio = measured_rates.placement_ratio(blocks, "a", "b")
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((3.0, 3.0, 3.0))
    drifting = measured_rates.placement_rate(blocks, "a")
    assert drifting is not None and drifting.half_width > 0.5
    assert measured_rates.placement_rate({(0, 0): {"a": 1.0}}, "a") is None


def test_an_interval_by_hand() -> None:
    blocks = {(0, at): {"a": math.exp(value), "b": 1.0} for at, value in enumerate((0.0, 0.1, 0.2))}
    ratio = measured_rates.placement_ratio(blocks, "a", "b")
    assert ratio is not None
    half = 4.303 * 0.1 / math.sqrt(3)
    assert math.log(ratio.high) == pytest.approx(0.1 + half) and math.log(ratio.low) == pytest.approx(
        0.1 - half
    )
    assert measured_rates.are_ratios_settled(
        blocks, ["b"], ["a", "b"], 0.4
    ) and not measured_rates.are_ratios_settled(blocks, ["b"], ["a", "b"], 0.2)


def test_blocks_of_one_bring_up_count_as_one() -> None:
    logs = {(0, 0): 0.0, (0, 1): 0.2, (1, 2): 0.2, (1, 3): 0.2, (2, 4): 0.3, (2, 5): 0.3}
    rate = measured_rates.placement_rate({key: {"a": math.exp(log)} for key, log in logs.items()}, "a")
    assert rate is not None and rate.blocks == 6
    assert math.log(rate.value) == pytest.approx(0.2)  # Bring-ups: 0.1, 0.2 and 0.3.
    assert math.log(rate.half_width + 1) == pytest.approx(4.303 * 0.1 / math.sqrt(3))


def test_a_summary_by_hand() -> None:
    pairs = [pair("a", 10.0, 10.0), pair("b", 16.5, 15.0), pair("c", 14.0, 28.0), pair("d", None, 40.0)]
    summary = summed(pairs)
    assert (summary.pairs, summary.refused, summary.ordered_pairs) == (3, 1, 2)
    assert summary.median == pytest.approx(0.1)
    assert summary.worst == pytest.approx(0.5)
    assert summary.bias == pytest.approx(0.0)
    assert summary.coverage == pytest.approx(2 / 3)
    assert summary.order == pytest.approx(1 / 2)


def test_bounds_are_exceeded_only_beyond_the_interval_of_the_measurement() -> None:
    bounds = [pair("a", 10.0, 10.0, bound_per_s=bound) for bound in (9.0, 9.95, 12.0)]
    summary = summed([*bounds, pair("b", 10.0, 10.0)])
    assert (summary.bounds, summary.exceeded) == (3, 1)


def test_pairs_in_order_differ_by_a_tenth_to_twice() -> None:
    def pairs(rate: float) -> list[PredictionPair]:
        return [pair("a", 1.0, 10.0), pair("b", 2.0, rate)]

    assert [summed(pairs(ratio)).ordered_pairs for ratio in (10.5, 12.0, 19.0, 21.0)] == [
        0,
        1,
        1,
        0,
    ]


def test_regret_compares_what_was_advised_with_the_best_for_its_price() -> None:
    pairs = [
        pair("r", 100.0, 100.0, price=0.0),
        pair("cheap", 150.0, 120.0, price=10.0),
        pair("dear", 140.0, 180.0, price=50.0),
        pair("unpriced", 900.0, 900.0),
    ]
    assert decision_regrets(pairs) == pytest.approx([0.0, 0.5])
    assert small_regret_share(pairs) == 0.5
    assert small_regret_share([]) is None


def test_a_verdict_is_judged_by_the_predictions() -> None:
    def recorded(case: str, usable: bool) -> JudgedRecording:
        return JudgedRecording(case=case, recorded="r", block=0, round="building", usable=usable)

    recordings = [recorded("usable", True), recorded("refused", False)]
    pairs = [
        pair("a", 10.0, 10.0, case="usable"),
        pair("r", 20.0, 10.0, case="usable"),
        pair("b", 14.0, 10.0, case="usable"),
        pair("c", 12.0, 10.0, 0.7, case="usable"),
        pair("d", None, 10.0, case="usable"),
        pair("a", 10.0, 10.0, case="refused"),
    ]
    assert count_verdicts(recordings, pairs) == {
        ("a figure", "good"): 1,
        ("a figure", "wrong"): 1,
        ("a range", "between"): 1,
        ("no answer", "wrong"): 1,
        ("not usable", "good"): 1,
    }


def test_the_score_by_hand() -> None:
    sure = Estimate(value=10.0, low=10 / 1.1, high=11.0)
    width = 2 * math.log(1.1)
    assert interval_score(sure, 10.5) == pytest.approx(width)
    assert interval_score(sure, 12.0) == pytest.approx(width + 40 * math.log(12 / 11))


def test_errors_that_grow_with_the_gained_processor_time_are_learnt_so() -> None:
    pairs = [
        pair("p", math.exp(sign * (0.02 + 0.2 * gained)), 1.0, case=f"case-{number}", gained=gained)
        for number in range(20)
        for gained in (0.0, 0.5, 1.0)
        for sign in (-1, 1)
    ]
    calibrated = calibrate_model_error(pairs, "2026-11-21").find("postgres", "emulated→emulated", "rate")
    assert calibrated is not None
    assert [calibrated.at(gained) for gained in (0.0, 0.5, 1.0)] == pytest.approx(
        [0.02, 0.12, 0.22], rel=0.02
    )


def test_a_case_of_many_predictions_does_not_decide_alone() -> None:
    many = [pair("p", 1.01, 1.0, gained=0.0) for _ in range(95)]
    few = [pair("p", 1.3, 1.0, case="other", gained=0.0) for _ in range(5)]
    calibrated = calibrate_model_error([*many, *few], "2026-11-21").find("any", "any", "rate")
    assert calibrated is not None
    assert calibrated.half_width == pytest.approx(math.log(1.3), rel=0.01)


def test_paths_and_engines_of_enough_cases_are_learnt_apart_and_controls_not_at_all() -> None:
    def pairs_of(count: int, predicted: float, **fields: str) -> list[PredictionPair]:
        return [
            pair("p", predicted, 1.0, case=f"{fields} {number}", gained=0.0, **fields)
            for number in range(count)
        ]

    pairs = pairs_of(20, 1.1, path="real→emulated") + pairs_of(9, 1.2, engine="mariadb")
    pairs += [pair("r", 3.0, 1.0, gained=0.0) for _ in range(30)]
    pairs += [pair("p", 3.0, 1.0, case="kept without the share") for _ in range(30)]
    calibrated = calibrate_model_error(pairs, "2026-11-21")
    assert [(error.engine, error.path) for error in calibrated.errors] == [
        ("any", "any"),
        ("any", "real→emulated"),
        ("postgres", "real→emulated"),
    ]
    everywhere = calibrated.nearest("sqlite", "emulated→real", "rate")
    assert everywhere is not None and (everywhere.cases, everywhere.path) == (29, "any")


def test_nothing_compared_is_no_pass() -> None:
    empty = PredictionAccuracy(day="2026-11-21", slots=0, recordings=[], pairs=[])
    assert not empty.passed
    assert "No such round has been run yet" in accuracy_page(empty, [], None)


def test_a_round_passes_only_if_every_bar_is_met() -> None:
    def accuracy(*pairs: PredictionPair) -> PredictionAccuracy:
        return PredictionAccuracy(day="2026-11-21", slots=0, recordings=[], pairs=list(pairs))

    control = pair("r", 10.1, 10.0, price=0.0)
    fine = [control, pair("a", 20.5, 20.0, price=5.0), pair("b", 31.0, 30.0, price=9.0)]
    assert accuracy(*fine).passed
    assert not accuracy(*fine, pair("c", 20.0, 50.0)).passed
    assert not accuracy(pair("r", 11.0, 10.0, price=0.0), *fine[1:]).passed, "the control errs by 10 %"
    assert not accuracy(*fine[:2], pair("b", 31.0, 30.0, price=9.0, bound_per_s=25.0)).passed


def test_measured_figures_of_a_ratio_follow_the_rate() -> None:
    assert measured(2.0).times(50.0).value == 100.0
    assert measured(2.0).half_width == pytest.approx(0.01)
