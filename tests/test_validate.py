"""Which cases are run in which order, what is learnt from errors, and what is said of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from fake_replay import FakeReplay, predictor, service_us
from results_factory import Make
from results_factory import run as synthetic
from tiny_study import Watcher

from tierwise import lab, validate
from tierwise.errors import TierwiseError
from tierwise.predict import Estimate, ModelError, Predictor
from tierwise.report.accuracy import accuracy_page, summary_rows
from tierwise.report.charts import WIDE, to_svg
from tierwise.report.charts.accuracy import accuracy_chart
from tierwise.report.palette import light_value
from tierwise.results import RunResult
from tierwise.study.spec import Study
from tierwise.validate import Pair
from tierwise.validate.accuracy import repeatability

TOML = """
recorded = ["all-nvme", "all-7k2"]
repeats = 2
[devices]
disk = "hdd-7k2"
nvme = "ssd-nvme-dc"
[placements]
all-nvme = { all = "nvme" }
all-7k2 = { all = "disk" }
log-nvme = { log = "nvme", all = "disk" }
[[cases]]
workload = "order_entry"
engines = ["postgres"]
clients = [1, 4]
seconds = 5
recorded_seconds = 20
placements = ["log-nvme"]
[[cases]]
workload = "crud"
engines = ["postgres"]
placements = ["log-nvme"]
[quick]
cases = ["crud-postgres"]
placements = ["log-nvme"]
"""
ERRORS = {"order_entry": 1.04, "crud": 0.9}
"""How many times faster each workload is measured than the fake predicts."""
DEVICES = {"all-nvme": ("ssd-nvme-dc",) * 4, "all-7k2": ("hdd-7k2",) * 4}
DEVICES["log-nvme"] = ("ssd-nvme-dc", *DEVICES["all-7k2"][1:])


@pytest.fixture
def spec(tmp_path: Path) -> validate.ValidationSpec:
    return validate.load(_file(tmp_path, TOML))


def _file(directory: Path, text: str) -> Path:
    file = directory / "cases.toml"
    file.write_text(text, "utf-8")
    return file


def _measured(study: Study, plan: Any, *rest: Any) -> RunResult:
    """In place of the lab: a run as fast as the fake says, but for the workload's own error."""
    devices = dict(zip(("log", "data", "index", "temp"), DEVICES[plan.placement.name], strict=True))
    each_us = service_us(devices) / ERRORS[study.workload]
    made = synthetic(Make(elapsed_s=0.003 * each_us, transactions=3000, order=plan.order))
    update = {"run_id": plan.run_id, "study": study.name, "placement": plan.placement.name}
    return made.model_copy(update=update)


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: Path, *, model_error: ModelError, **_: Any) -> Predictor:
        fake = FakeReplay(once="crud" in str(path))
        return predictor(fake, model_error=model_error)

    monkeypatch.setattr("tierwise.validate.runner.execute", _measured)
    monkeypatch.setattr(Predictor, "open", opened)


def _judged(spec: validate.ValidationSpec, out: Path) -> tuple[validate.Accuracy, ModelError]:
    cases, left_out = validate.cases_of(spec, False, [])
    validate.run(spec, cases, out, Watcher(), seed=1)
    runs = validate.Runs(spec, cases, out, lab.results_in(out))
    return validate.judge(runs, left_out, str)


def test_shipped_cases_cover_what_was_promised() -> None:
    spec = validate.load()
    cases = spec.expanded()
    workloads = {case.workload for case in cases if case.study.engines == ["postgres"]}
    assert workloads == {
        "order_entry", "index_update", "bulk_copy", "crud", "simple_objects", "spill_join", "bahrain", "dss",
    }  # fmt: skip
    assert {case.study.clients for case in cases if case.workload == "order_entry"} == {1, 4, 10, 32}
    for engine in ("mariadb", "sqlite"):
        assert {"order_entry", "crud"} <= {c.workload for c in cases if c.study.engines == [engine]}
    assert all(len(case.study.placements) - 1 >= 6 for case in cases)
    kept, _ = validate.cases_of(spec, False, [])
    assert all(len(case.study.placements) - 1 >= 6 for case in kept)


def test_the_cases_of_the_page_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "validation.md").read_text("utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert len(validate.load(_file(tmp_path, example)).expanded()) == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('disk = "hdd-7k2"', "", "unknown device 'disk'"),
        ('log = "nvme", all', 'lag = "nvme", all', "unknown role 'lag'"),
        ('recorded = ["all-nvme"', 'recorded = ["fast"', "unknown placements fast"),
        ('workload = "crud"', 'work = "crud"', "cases.1.workload"),
        ("repeats = 2", "repeats = 0", "repeats"),
        ("[devices]", "[devices", "TOML"),
    ],
)
def test_wrong_cases_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(TierwiseError, match=message) as refused:
        validate.load(_file(tmp_path, TOML.replace(old, new)))
    assert "cases.toml" in str(refused.value)


def test_cases_are_chosen_by_name(spec: validate.ValidationSpec) -> None:
    def names(quick: bool, *given: str) -> list[str]:
        return [case.name for case in validate.cases_of(spec, quick, given)[0]]

    assert names(True) == ["crud-postgres"]
    assert names(False, "order_entry") == ["order_entry-postgres-1", "order_entry-postgres-4"]
    with pytest.raises(TierwiseError, match="no case 'order'"):
        names(False, "order")


def test_recordings_come_first_and_rounds_are_shuffled(spec: validate.ValidationSpec) -> None:
    cases, _ = validate.cases_of(spec, False, [])
    runs = validate.plan(cases, spec.recorded, seed=3)
    assert [run.kind for run in runs] == ["recorded"] * 6 + ["measured"] * 18
    first, second = runs[6:15], runs[15:]
    assert {(run.case.name, run.placement) for run in first} == {
        (run.case.name, run.placement) for run in second
    }
    assert [run.run_id[:-1] for run in first] != [run.run_id[:-1] for run in second]
    assert runs == validate.plan(cases, spec.recorded, seed=3)
    mixes = [run.study.seconds for run in runs if run.case.workload == "order_entry"]
    assert mixes == [20] * 4 + [5] * 12
    seeds = {(run.case.name, run.seed) for run in runs}
    assert len(seeds) == len(cases), "measured is the same work that was recorded"


def test_a_stopped_validation_goes_on(
    spec: validate.ValidationSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, _ = validate.cases_of(spec, True, [])
    done: list[str] = []

    def stops(study: Study, plan: Any, *rest: Any) -> RunResult:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(plan.run_id)
        return _measured(study, plan)

    monkeypatch.setattr("tierwise.validate.runner.execute", stops)
    with pytest.raises(KeyboardInterrupt):
        validate.run(spec, cases, tmp_path / "v", Watcher())
    monkeypatch.setattr("tierwise.validate.runner.execute", _measured)
    watcher = Watcher()
    validate.run(spec, cases, tmp_path / "v", watcher)
    assert (watcher.finished_before, len(watcher.results)) == (3, 2)
    assert not {result.run_id for result in watcher.results} & set(done)


def test_other_cases_need_another_directory(
    spec: validate.ValidationSpec, tmp_path: Path, faked: None
) -> None:
    cases, _ = validate.cases_of(spec, True, [])
    validate.run(spec, cases, tmp_path / "v", Watcher())
    other = validate.load(_file(tmp_path, TOML.replace("seconds = 5", "seconds = 6")))
    with pytest.raises(TierwiseError, match="other cases"):
        validate.run(other, cases, tmp_path / "v", Watcher())
    validate.run(other, cases, tmp_path / "v", Watcher(), fresh=True)


def test_intervals_know_the_errors_of_other_workloads(
    spec: validate.ValidationSpec, tmp_path: Path, faked: None
) -> None:
    accuracy, learnt = _judged(spec, tmp_path / "v")
    assert len(accuracy.pairs) == 12
    for pair in accuracy.pairs:
        faster = ERRORS[pair.workload]
        expected = faster if pair.unit == "s" else 1 / faster
        assert pair.error == pytest.approx(expected - 1, abs=0.005)
        # Errors of 4 % are covered where one of 10 % is known, and not the other way round.
        assert pair.covered == (pair.workload == "order_entry")
    widest = learnt.find("postgres", "emulated→emulated", "rate")
    assert widest is not None
    assert widest.half_width == pytest.approx(-math.log(0.9), abs=0.005)


def test_what_is_learnt_is_what_predictions_read(
    spec: validate.ValidationSpec, tmp_path: Path, faked: None
) -> None:
    _, learnt = _judged(spec, tmp_path / "v")
    file = tmp_path / "model_error.toml"
    file.write_text(validate.to_toml(learnt), "utf-8")
    read = ModelError.read(file)
    assert [one.cases for one in read.errors] == [one.cases for one in learnt.errors]
    assert {one.what for one in read.errors} == {"rate", "p50", "p95", "p99"}


def test_the_page_says_what_was_found(spec: validate.ValidationSpec, tmp_path: Path, faked: None) -> None:
    accuracy, _ = _judged(spec, tmp_path / "v")
    page = accuracy_page(accuracy, lab.results_in(tmp_path / "v"), "accuracy.svg")
    assert "Not all bars are kept: over 12 predictions" in page
    assert "| crud-postgres | all-7k2 | log-nvme |" in page
    assert "6.0.0" not in page
    assert [row[0] for row in summary_rows(accuracy)] == [
        "all", "recorded on all-nvme", "recorded on all-7k2", "about as fast",
        "over 1.5 times faster", "engine postgres", "order entry", "crud",
    ]  # fmt: skip
    drawing = to_svg(accuracy_chart(accuracy.pairs, WIDE), "accuracy", "predicted")
    assert "Measured" in drawing
    assert drawing.count(f'fill="{light_value("place-1")}"') > 6, "marks have the colour of their workload"


def _pair(placement: str, predicted: float | None, measured: list[float], half: float = 0.1) -> Pair:
    estimate = predicted and Estimate(
        value=predicted, low=predicted * (1 - half), high=predicted * (1 + half)
    )
    return Pair(
        case="c", workload="w", engine="postgres", clients=1, recorded="r", placement=placement, unit="s",
        measured=measured, predicted=estimate or None,
    )  # fmt: skip


def test_a_summary_by_hand() -> None:
    pairs = [
        _pair("a", 10.0, [10.0]),
        _pair("b", 22.0, [20.0]),
        _pair("c", 15.0, [30.0]),
        _pair("d", None, [40.0]),
    ]
    found = validate.summary(pairs)
    assert (found.pairs, found.refused, found.ordered_pairs) == (3, 1, 3)
    assert found.median == pytest.approx(0.1)
    assert found.worst == pytest.approx(0.5)
    assert found.bias == pytest.approx(0.0)
    assert found.coverage == pytest.approx(2 / 3)
    assert found.order == pytest.approx(2 / 3)
    assert not found.passed


def test_errors_that_grow_with_the_distance_are_learnt_so() -> None:
    pairs = [
        _pair("p", math.exp(error), [1.0]).model_copy(update={"speedup": math.exp(far)})
        for far in (-2.0, -1.0, 0.0, 1.0, 2.0)
        for error in (0.02 + 0.2 * max(far, 0.0), -0.02 - 0.2 * max(far, 0.0))
        for _ in range(4)
    ]
    learnt = validate.learn(pairs, "2026-11-21").find("postgres", "emulated→emulated", "rate")
    assert learnt is not None
    assert [learnt.at(math.exp(far)) for far in (-3, 0, 2)] == pytest.approx([0.02, 0.02, 0.42], rel=0.02)


def test_placements_that_do_not_differ_have_no_order() -> None:
    many = [_pair("a", 11.0, [10.0, 10.4, 9.8]), _pair("b", 10.0, [10.1, 9.9, 10.5])]
    assert validate.summary(many).ordered_pairs == 0
    once = [_pair("a", 11.0, [10.0]), _pair("b", 10.0, [10.5])]
    assert validate.summary(once).ordered_pairs == 0


def test_runs_of_the_same_say_how_near_a_prediction_can_be() -> None:
    pairs = [_pair("a", 1.0, [10.0, 11.0]), _pair("a", 2.0, [10.0, 11.0]), _pair("b", 1.0, [6.0, 5.0])]
    assert repeatability(pairs) == pytest.approx((0.15, 0.19))
    assert repeatability([_pair("a", 1.0, [10.0])]) is None


def test_nothing_compared_is_no_pass() -> None:
    assert not validate.summary([]).passed
    empty = validate.Accuracy(day="2026-11-21", runs=0, reproductions=[], pairs=[])
    assert "Nothing was compared yet" in accuracy_page(empty, [], None)
