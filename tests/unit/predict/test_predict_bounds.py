"""Bounds, a run that is not reproduced, mean-value analysis, the state an answer holds for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.fake_replay import CPU_US, GB, REQUESTS, SERVICE_US, FakeReplay, predictor
from tierwise.device_models import profiles
from tierwise.model.numbers import percent_text
from tierwise.predict import ModelError, Prediction, Scenario, bounds, mean_value_analysis, rank_placements
from tierwise.predict.simulator_output import SimulationOutcome, WorkSummary
from tierwise.report.recording.prediction_report import prediction_sentence

RECORDED_US = {role: count * SERVICE_US["recorded"] for role, count in REQUESTS.items()}
DEMANDS: dict[str, Any] = {
    "server_cpu_us": CPU_US,
    "reads": {"data": 0.5},
    "waits": [
        {"category": "log_device" if role == "log" else "read", "role": role, "time_us": time_us}
        for role, time_us in RECORDED_US.items()
    ],
}
LEFT_US = 0.2 * CPU_US
"""Processor time of a transaction that no longer waits for what took it milliseconds."""
APART = [{"profile": "hdd-7k2", "roles": [role]} for role in REQUESTS]


def answered(scenario: Scenario, calibrated: ModelError | None = None, **fake: Any) -> Prediction:
    """The answer of a fake whose roles lie on devices of their own."""
    replay = FakeReplay(devices=APART, demands=DEMANDS, **fake)
    (answer,) = predictor(replay, model_error=calibrated).predict([scenario])
    return answer


def test_the_bound_is_the_cycle_without_the_waits_that_end() -> None:
    answer = answered(Scenario(placement={"log": "nvme-dc"}))
    rest_us = LEFT_US + sum(RECORDED_US.values()) - RECORDED_US["log"]
    assert answer.bound
    assert answer.bound.rate_per_s == pytest.approx(4e6 / rest_us)
    assert "all waits on the log" in answer.bound.because
    both = answered(Scenario(placement={"log": "nvme-dc", "index": "nvme-dc"})).bound
    assert both and "all waits on the log and the indexes, for locks" in both.because
    assert answer.rate_per_s
    assert answer.rate_per_s.high <= answer.bound.rate_per_s
    assert answer.speedup
    assert answer.speedup.high <= answer.bound.speedup


def test_roles_that_share_the_device_may_gain_too() -> None:
    fake = FakeReplay(demands=DEMANDS)
    (answer,) = predictor(fake).predict([Scenario(placement={"log": "nvme-dc"}, cores=8)])
    assert answer.bound
    assert answer.bound.rate_per_s == pytest.approx(4e6 / LEFT_US)


def test_cores_bound_what_waits_do_not() -> None:
    answer = answered(Scenario(placement={"all": "ram"}))
    assert answer.bound
    assert answer.bound.rate_per_s == pytest.approx(2e6 / LEFT_US)
    assert "2 cores give no more" in answer.bound.because


def test_fewer_cores_have_no_bound() -> None:
    """One client's look-ups were "at most 1.9 times as fast" on one core, and measured at 5.2 times."""
    assert answered(Scenario(placement={"all": "ram"}, cores=1)).bound is None


@pytest.mark.parametrize(
    ("reads", "waited_us", "left_us"),
    [
        (0.0, 0.0, 0.8 * CPU_US),
        (0.0, 60.0, 0.8 * CPU_US - 30.0),
        (0.0, 1e6, 0.4 * CPU_US),
        (0.5, 1e6, 0.2 * CPU_US),
        (0.005, 1e6, 0.4 * CPU_US),
    ],
)
def test_processor_time_goes_with_the_waits(reads: float, waited_us: float, left_us: float) -> None:
    """Half a microsecond for each one waited, a fifth for recording; 40 % stays, 20 % of reading ones."""
    log = {"category": "log_device", "role": "log", "time_us": waited_us}
    replay = FakeReplay(devices=APART, demands=DEMANDS | {"waits": [log], "reads": {"data": reads}})
    bound = bounds.rate_upper_bound(Scenario(placement={"all": "ram"}), predictor(replay).work, 1.0)
    assert bound
    assert bound.rate_per_s == pytest.approx(2e6 / left_us)
    assert f"{percent_text(left_us / CPU_US)} of the recorded processor time" in bound.because


@pytest.mark.parametrize(
    ("log_us", "left"),
    [
        (0.0, 1.0),  # reads of the same device stay, and so does the time that they take
        (10.0, 0.925),  # at most 15 µs go with 10 µs of waiting
        (100.0, 0.55),  # half of the wait, and a fifth that may be the recording's
        (10_000.0, 0.08),
    ],
)
def test_processor_time_goes_with_the_waits_that_a_setting_ends(log_us: float, left: float) -> None:
    waits = [
        {"category": "log_device", "role": "log", "time_us": log_us},
        {"category": "read", "role": "data", "time_us": 50_000.0},
    ]
    recorded = WorkSummary.model_validate_json(FakeReplay(demands={**DEMANDS, "waits": waits}).work())
    setting = Scenario(settings=["synchronous_commit=off"])
    assert bounds.least_cpu_share(setting, recorded) == pytest.approx(left)


def test_more_memory_has_no_bound_where_reads_were_recorded() -> None:
    """A read that memory answers takes less processor time, and the recording does not tell how much."""
    work = predictor(FakeReplay(devices=APART, demands=DEMANDS)).work
    less, more = (
        bounds.rate_upper_bound(Scenario(memory_bytes=size), work, 100.0) for size in (4 * GB, 16 * GB)
    )
    assert less is not None
    assert more is None


def test_the_cores_of_few_clients_are_no_bound_of_more() -> None:
    few, many = (answered(Scenario(placement={"all": "ram"}, clients=clients)) for clients in (4, 16))
    assert few.bound and many.bound
    assert many.bound.rate_per_s == pytest.approx(2 * 2e6 / LEFT_US), "half of the processor time is left"
    assert many.bound.rate_per_s > few.bound.rate_per_s


def test_cores_bound_any_number_of_clients() -> None:
    """100,000 clients on two cores were "between 0.18 and 4 400 times the throughput"."""
    thousand, all_of_them = (answered(Scenario(clients=clients)) for clients in (1000, 100_000))
    assert thousand.bound and all_of_them.bound and all_of_them.rate_per_s
    assert all_of_them.bound.rate_per_s == pytest.approx(thousand.bound.rate_per_s)
    assert all_of_them.rate_per_s.high <= all_of_them.bound.rate_per_s
    assert "2 cores give no more" in all_of_them.bound.because


def test_no_answer_exceeds_its_bound_and_none_is_without() -> None:
    of = predictor(FakeReplay(demands=DEMANDS | {"server_cpu_us": 3000.0}))
    for answer in of.predict([Scenario(placement={role: "nvme-dc"}) for role in ("all", "log", "data")]):
        assert answer.bound
        assert answer.rate_per_s
        assert answer.rate_per_s.low < answer.rate_per_s.value <= answer.rate_per_s.high
        assert answer.rate_per_s.high <= answer.bound.rate_per_s * 1.000001
    ranked = rank_placements(of, ["nvme-dc"]).ranked
    assert max(placing.rate_per_s for placing in ranked) <= 2e6 / (0.2 * 3000) * 1.000001


def test_bounds_of_requests_are_the_share_of_each_in_a_transaction() -> None:
    of = predictor(FakeReplay(devices=APART, demands=DEMANDS), unit="requests")
    (answer,) = of.predict([Scenario(placement={"log": "nvme-dc"})])
    whole = answered(Scenario(placement={"log": "nvme-dc"})).bound
    assert answer.bound and whole
    assert answer.bound.rate_per_s == pytest.approx(3 * whole.rate_per_s)
    assert answer.bound.speedup == pytest.approx(whole.speedup)


def test_fewer_clients_may_leave_any_queue() -> None:
    answer = answered(Scenario(clients=1))
    assert answer.bound
    assert answer.bound.rate_per_s == pytest.approx(1e6 / LEFT_US)


def test_a_run_that_is_not_reproduced_widens_the_answer() -> None:
    scenario = Scenario(placement={"log": "nvme-dc"})
    sure, unsure = (answered(scenario, error=error) for error in (0.0, 0.12))
    assert sure.rate_per_s and unsure.rate_per_s and unsure.speedup
    assert unsure.refused is None
    assert unsure.rate_per_s.high / unsure.rate_per_s.low > 1.1 * sure.rate_per_s.high / sure.rate_per_s.low
    assert any("+12\u00a0%" in warning for warning in unsure.warnings)
    assert not any("recorded run gives" in warning for warning in sure.warnings)


def test_the_recorded_run_comes_out_as_recorded() -> None:
    of = predictor(FakeReplay(error=0.3))
    assert of.as_recorded.rate_per_s
    assert of.as_recorded.rate_per_s.value == pytest.approx(of.run.rate_per_s, rel=0.01)


def test_an_answer_is_the_recorded_rate_times_the_ratio_of_replays_and_spans_the_replay() -> None:
    scenario = Scenario(placement={"log": "ram"})
    exact, over = (answered(scenario, error=error) for error in (0.0, 0.1))
    assert exact.rate_per_s and over.rate_per_s and exact.speedup and over.speedup
    # The fake replays the recorded run a tenth too fast, and everything else exactly.
    assert over.speedup.value == pytest.approx(exact.speedup.value / 1.1, rel=1e-3)
    assert over.rate_per_s.value == pytest.approx(exact.rate_per_s.value / 1.1, rel=1e-3)
    assert over.rate_per_s.high >= exact.rate_per_s.value


def test_what_bounds_cannot_narrow_is_called_bounds() -> None:
    wide = {"engine": "postgres", "path": "emulated→real", "what": "rate", "changes": ["placement"]}
    wide |= {"cases": 50, "half_width": 1.0, "calibrated": "2026-11-21"}
    calibrated = ModelError.model_validate({"errors": [wide]})
    answer = answered(Scenario(placement={"all": "ram"}), calibrated, error=0.1)
    assert answer.refused is None
    assert answer.bounds_only
    assert answer.bound and answer.rate_per_s
    assert answer.rate_per_s.high <= answer.bound.rate_per_s


def work(**changes: Any) -> WorkSummary:
    text = FakeReplay(demands=DEMANDS, **changes).work()
    return WorkSummary.model_validate_json(text)


def outcome(rate_per_s: float, flush_us: float, **changes: Any) -> SimulationOutcome:
    """Ten seconds in which every transaction commits, each with a flush of its own."""
    count = round(10 * rate_per_s)
    log = {"role": "log", "reads": 0, "writes": count, "flushes": count, "read_bytes": 0, "written_bytes": 0}
    outcome = {
        "elapsed_s": 10.0,
        "turns": count,
        "transactions": count,
        "latency": dict.fromkeys(("p50_us", "p95_us", "p99_us", "mean_us"), 1e3),
        "shares": {"cpu": 0.2, "log_device": 0.8},
        "commits_per_flush": 1.0,
        "busy_share": 0.4,
        "io": [log | {"busy_s": count * flush_us / 1e6}],
        "warnings": [],
    }
    return SimulationOutcome.model_validate(outcome | changes)


def test_mean_value_analysis_of_one_client_is_the_sum_of_its_times() -> None:
    simulated = 1e6 / 1200
    rate_per_s = mean_value_analysis.mean_value_rate_per_s(
        Scenario(clients=1), work(), outcome(simulated, 1000.0), simulated
    )
    assert rate_per_s == pytest.approx(1e6 / (CPU_US + 1000.0), rel=0.01)


def test_mean_value_analysis_of_many_clients_fills_the_cores() -> None:
    scenario = Scenario(clients=400, cores=1)
    rate_per_s = mean_value_analysis.mean_value_rate_per_s(scenario, work(), outcome(4000.0, 100.0), 4000.0)
    assert rate_per_s == pytest.approx(1e6 / CPU_US, rel=0.02)


def test_commits_that_come_all_the_time_wait_one_and_a_half_flushes() -> None:
    simulated = 100e6 / 15_000
    rate_per_s = mean_value_analysis.mean_value_rate_per_s(
        Scenario(clients=100, cores=64), work(), outcome(simulated, 10_000.0), simulated
    )
    assert rate_per_s == pytest.approx(100e6 / (CPU_US + 15_000.0), rel=0.02)


def test_a_second_opinion_that_differs_is_said() -> None:
    assert mean_value_analysis.mean_value_disagreement(900.0, 1000.0) is None
    assert mean_value_analysis.mean_value_disagreement(None, 1000.0) is None
    assert "−30\u00a0%" in (mean_value_analysis.mean_value_disagreement(700.0, 1000.0) or "")


def test_the_state_of_the_cache_and_of_checkpoints_is_said() -> None:
    answer = answered(Scenario(placement={"log": "nvme-dc"}))
    text = " ".join(answer.notes)
    assert "0 reads of a device a transaction, 0.5 in the recording: once it is warm" in text
    assert "devices after long use: ssd-nvme-dc" in text
    emulated = answered(Scenario(placement={"log": "nvme-dc"}, emulated=True))
    assert "devices as new: ssd-nvme-dc" in emulated.notes


def test_the_doubts_of_a_probe_stand_in_every_answer_with_its_profile(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("# Doubt: it is an array\n" + profiles.load_profile("nvme-dc").text)
    assert "mine: it is an array" in answered(Scenario(placement={"log": str(mine)})).warnings
    assert not any("array" in text for text in answered(Scenario(placement={"log": "nvme-dc"})).warnings)


def test_a_time_that_no_device_reaches_is_doubted(tmp_path: Path) -> None:
    """A time in ms where us are meant made a device as fast as its link, without a word."""
    mine = tmp_path / "mine.toml"
    mine.write_text(profiles.load_profile("nvme-dc").text.replace("read_us = 66", "read_us = 0.066"))
    warnings = answered(Scenario(placement={"log": str(mine)})).warnings
    assert "mine: read_us = 0.066 is less than any device takes: a time in us is meant" in warnings
    assert not any(profiles.load_profile(name).doubts for name in profiles.profile_names())


def test_a_rate_is_kept_or_saturated() -> None:
    class Busy(FakeReplay):
        def _outcome(self, scenario: dict[str, Any], profiles: Any, factor: float = 1.0) -> dict[str, Any]:
            done = super()._outcome(scenario, profiles, factor)
            return done | {"waiting": 5000 if (scenario.get("rate_per_s") or 0) > 600 else 0}

    kept, lost = predictor(Busy(error=0.2)).predict([Scenario(rate_per_s=500), Scenario(rate_per_s=700)])
    assert (kept.saturated, lost.saturated) == (False, True)
    assert kept.rate_per_s and lost.rate_per_s
    assert kept.rate_per_s.high < 1.01 * kept.rate_per_s.low
    assert lost.rate_per_s.high > 1.2 * lost.rate_per_s.low
    assert "all are done, half of them within" in prediction_sentence(kept)
    assert "saturated, no more than" in prediction_sentence(lost)


def test_arrivals_are_answered_sooner_and_not_more_often() -> None:
    observed = {"turns_per_s": 300.0, "transactions_per_s": 100.0, "arrive": True}
    asked: list[dict[str, Any]] = []

    class Arriving(FakeReplay):
        def predict(self, scenarios: str, profiles: Any, threads: int) -> str:
            asked.extend(json.loads(scenarios))
            return super().predict(scenarios, profiles, threads)

    faster = Scenario(placement={"log": "nvme-dc"})
    of_clients = faster.model_copy(update={"clients": 8})
    prediction = predictor(Arriving(error=-0.3, observed=observed))
    same, more = prediction.predict([faster, of_clients])
    assert {request["rate_per_s"] for request in asked} == {100.0, None}
    assert prediction.as_recorded.rate_per_s and prediction.as_recorded.rate_per_s.value == pytest.approx(
        100.0
    )
    assert same.rate_per_s and same.rate_per_s.value == pytest.approx(100.0)
    assert same.rate_per_s.high < 1.08 * same.rate_per_s.low
    assert same.speedup and same.speedup.value == pytest.approx(1.0)
    assert (
        same.p50_us and prediction.as_recorded.p50_us and same.p50_us.high < prediction.as_recorded.p50_us.low
    )
    assert any("arrived by a schedule, 100 a second" in warning for warning in same.warnings)
    assert more.rate_per_s and more.rate_per_s.value > 200.0
    assert not any("by a schedule" in warning for warning in more.warnings)


def test_devices_are_worn_in_unless_asked_otherwise() -> None:
    asked: list[str] = []

    class Seen(FakeReplay):
        def predict(self, scenarios: str, profiles: Any, threads: int) -> str:
            asked.append(scenarios)
            return super().predict(scenarios, profiles, threads)

    scenarios = [Scenario(placement={"log": "nvme-dc"}, emulated=emulated) for emulated in (False, True)]
    predictor(Seen()).predict(scenarios)
    assert asked[0].count('"worn": true') == asked[0].count('"worn": false')
