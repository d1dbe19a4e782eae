"""Scenarios to a recording: what is answered, how surely, and what is refused. The simulator is a fake."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fake_replay import GB, REQUESTS, FakeReplay, about, predictor, service_us
from support.paths import RECORDINGS
from tierwise.advise.costs import PlacementCosts
from tierwise.advise.search import PlacementSearch
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import parse_placement
from tierwise.predict import ModelError, Scenario, rank_placements, resolve_device, scenario_machine
from tierwise.predict.answer import NOT_VALIDATED, VALIDATED_ELSEWHERE
from tierwise.predict.estimates import estimate_from_seeds
from tierwise.predict.model_error import ANY
from tierwise.predict.named_devices import RECORDED
from tierwise.predict.predictor import Predictor
from tierwise.predict.replayer import Replayer
from tierwise.report.recording.prediction_report import scenario_parts

LEARNT = ModelError.model_validate(
    {
        "errors": [
            {
                "engine": engine,
                "path": path,
                "what": "rate",
                "changes": ["placement"],
                "cases": 50,
                "half_width": width,
                "calibrated": "2026-11-21",
            }
            for engine, path, width in (
                ("mariadb", "emulated→real", 0.4),
                ("postgres", "emulated→emulated", 0.3),
                ("postgres", "emulated→real", 0.1),
            )
        ]
    }
)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("nvme-dc", "ssd-nvme-dc"),
        ("hdd-7k2-sata", "hdd-7k2-sata-2009"),
        ("7k2", "hdd-7k2"),
        ("gp3", "volume-aws-gp3"),
        ("aws-io2", "volume-aws-io2"),
        ("ram", "ram"),
    ],
)
def test_devices_go_by_short_names(name: str, full: str) -> None:
    assert resolve_device(name).name == full


def test_a_second_device_of_a_kind_has_a_number() -> None:
    assert resolve_device("nvme-dc#2").name == "ssd-nvme-dc#2"
    assert resolve_device("nvme-dc#1").name == "ssd-nvme-dc"
    assert resolve_device("nvme-dc#01").name == "ssd-nvme-dc"
    assert resolve_device("nvme-dc#02").name == "ssd-nvme-dc#2"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("aws", "volume-aws-gp3, "),
        ("nvem-dc", "unknown device profile"),
        ("nvme-dc#x", "'x' is not a number"),
    ],
)
def test_a_device_that_is_none_is_refused(name: str, says: str) -> None:
    with pytest.raises(TierwiseError, match=says):
        resolve_device(name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("log", "is not ROLE=DEVICE"),
        ("wal=ram", "unknown role 'wal'"),
        ("log=ram,log=zero", "given twice"),
        ("", "empty"),
        (",", "empty"),
    ],
)
def test_a_placement_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(TierwiseError, match=says):
        parse_placement(text)


def test_a_question_with_an_unknown_role_or_device_is_refused() -> None:
    with pytest.raises(TierwiseError, match="unknown role"):
        Scenario(placement={"wal": "ram"})
    with pytest.raises(TierwiseError, match="unknown device profile"):
        Scenario(placement={"log": "nope-nope"})


def test_moving_the_log_gives_the_rate_that_the_simulator_says() -> None:
    (answer,) = predictor().predict([Scenario(placement={"log": "nvme-dc"})])
    devices = dict.fromkeys(REQUESTS, "recorded")
    before, after = (1e6 / service_us(devices | {"log": log}) for log in ("recorded", "ssd-nvme-dc"))
    assert answer.rate_per_s
    assert answer.speedup
    assert answer.elapsed_s
    assert answer.rate_per_s.value == pytest.approx(after, rel=0.01)
    assert answer.rate_per_s.low < answer.rate_per_s.value < answer.rate_per_s.high
    assert answer.speedup.value == pytest.approx(after / before, rel=0.01)
    assert answer.elapsed_s.value == pytest.approx(60.0 * before / after, rel=0.01)
    assert answer.faster
    assert answer.io
    assert {load.device for role, load in answer.io.items() if role == "log"} == {"ssd-nvme-dc"}


def test_without_a_learnt_error_every_answer_says_so() -> None:
    (answer,) = predictor(model_error=ModelError()).predict([Scenario(placement={"log": "ram"})])
    assert NOT_VALIDATED in answer.warnings
    assert not answer.validated


def test_a_learnt_error_widens_the_interval_and_names_what_it_has_not_tried() -> None:
    of = predictor(model_error=LEARNT)
    moved, faster = of.predict([Scenario(placement={"log": "ram"}), Scenario(cpu_speed=2.0)])
    assert moved.rate_per_s
    assert moved.rate_per_s.high / moved.rate_per_s.value == pytest.approx(1.105, abs=0.01)
    assert moved.validated
    assert not any("no validation has tried" in warning for warning in moved.warnings)
    assert any("no validation has tried a change of CPU speed" in warning for warning in faster.warnings)


def test_an_engine_or_path_that_was_never_validated_says_so() -> None:
    of = predictor(model_error=LEARNT)
    real, emulated = (Scenario(placement={"log": "ram"}, emulated=device) for device in (False, True))
    assert [answer.validated for answer in of.predict([real, emulated])] == [True, True]
    on_real = predictor(FakeReplay(devices=[{"profile": None, "roles": ["log"]}]), model_error=LEARNT)
    (answer,) = on_real.predict([real])
    assert not answer.validated
    assert NOT_VALIDATED in answer.warnings


def test_the_error_of_all_engines_stands_in_for_one_that_is_not_known() -> None:
    every = LEARNT.errors[0].model_copy(update={"engine": ANY, "half_width": 0.5})
    scenario = Scenario(placement={"log": "ram"}, emulated=every.path.endswith("emulated"))
    own, other = (
        predictor(model_error=ModelError(errors=errors)).predict([scenario])[0]
        for errors in ([*LEARNT.errors, every], [every])
    )
    assert own.validated and not other.validated
    assert VALIDATED_ELSEWHERE in other.warnings
    assert own.rate_per_s and other.rate_per_s
    assert other.rate_per_s.high / other.rate_per_s.value > 1.6 > own.rate_per_s.high / own.rate_per_s.value


def test_a_device_has_to_hold_the_files_that_were_not_touched_too() -> None:
    known = about(role_bytes={"data": 100 * GB, "log": 1})
    of = Predictor(known, [], Replayer(FakeReplay()), model_error=ModelError())
    small = {"data": "ssd-sata-slc-2008-64g"}
    whole, log = of.predict([Scenario(placement=small), Scenario(placement={"log": "nvme-dc"})])
    assert whole.refused and "the files placed there have 100.0 GB" in whole.refused.message
    assert log.refused is None
    assert rank_placements(of, ["ssd-sata-slc-2008-64g"]).ranked == []
    (touched,) = predictor().predict([Scenario(placement=small)])
    assert touched.refused is None, "40 GB are all that is known of older recordings"


def test_growth_is_a_rate_a_cache_of_less_data_and_larger_files() -> None:
    of = predictor(FakeReplay(**TELLS_MEMORY))
    scenario = scenario_machine.scenario_with_growth(Scenario(growth=10.0), of.run, of.work)
    assert scenario.rate_per_s == pytest.approx(10 * of.run.rate_per_s)
    less = of.work.memory_bytes - (scenario.memory_bytes or 0)
    assert less == pytest.approx(0.9 * of.work.page_cache.likely_bytes, abs=1)
    small = predictor(FakeReplay(footprints={"log": 10 * GB}))
    on_slc = Scenario(placement={"log": "ssd-sata-slc-2008"})
    plain, ten = small.predict([on_slc, on_slc.model_copy(update={"growth": 10.0})])
    assert plain.refused is None
    assert ten.refused and "100.0 GB" in ten.refused.message
    (answer,) = small.predict([Scenario(growth=2.0)])
    assert any("growth: files 2 times as large" in note for note in answer.notes)


def test_growth_of_requests_is_refused_and_says_what_rates_count() -> None:
    """It was said that the recording shows no transactions, where ``--unit`` asked for requests."""
    of = predictor(FakeReplay())
    with pytest.raises(TierwiseError, match=r"^growth: rates count requests, not transactions: "):
        scenario_machine.scenario_with_growth(Scenario(growth=2.0), of.run.changed(unit="requests"), of.work)


def test_growth_warns_first_of_a_recorded_device_that_is_full_before() -> None:
    """Files that stay were answered on a device that does not hold them."""
    command = ["predict", str(RECORDINGS / "pgbench-10gb"), "--growth", "2", "--seeds", "2"]
    stays, moves = (
        CliRunner().invoke(app, [*command, "--place", f"{role}=nvme-dc"]) for role in ("log", "data")
    )
    full = "loop0, the recorded device of data, system, holds 15.0 GB and is full at 1.39 times the data"
    assert f"Warning: {full}" in stays.output and "is full" not in moves.output, stays.output


def test_stolen_processor_time_widens_the_interval() -> None:
    stolen, plain = (
        predictor(stolen_cpu_share=share).predict([Scenario(placement={"log": "ram"})])[0]
        for share in (0.2, 0.0)
    )
    assert stolen.rate_per_s and plain.rate_per_s
    assert stolen.rate_per_s.high > 1.05 * plain.rate_per_s.high
    assert any("the hypervisor gave 20\u00a0% of the processors" in warning for warning in stolen.warnings)


def test_fewer_clients_than_recorded_widen_the_interval_too() -> None:
    of = predictor()
    same, fewer = of.predict([Scenario(clients=4), Scenario(clients=1)])
    assert same.rate_per_s and fewer.rate_per_s
    assert fewer.rate_per_s.high / fewer.rate_per_s.low > 2 * same.rate_per_s.high / same.rate_per_s.low
    assert any("1 client is fewer than the 4 recorded" in warning for warning in fewer.warnings)


def test_many_more_clients_than_recorded_are_answered_with_a_wide_interval() -> None:
    few, many = predictor().predict([Scenario(clients=8), Scenario(clients=128)])
    assert few.rate_per_s and many.rate_per_s
    assert many.rate_per_s.high / many.rate_per_s.low > few.rate_per_s.high / few.rate_per_s.low
    assert any("128 clients are more than the 4 recorded" in warning for warning in many.warnings)


def test_percentiles_have_learnt_errors_of_their_own() -> None:
    wide = LEARNT.errors[2].model_copy(update={"what": "p99", "half_width": 0.5})
    calibrated = ModelError(errors=[*LEARNT.errors, wide])
    (answer,) = predictor(model_error=calibrated).predict([Scenario(placement={"log": "ram"})])
    assert answer.p50_us and answer.p99_us
    assert math.log(answer.p99_us.high / answer.p99_us.value) == pytest.approx(0.5, abs=0.01)
    assert math.log(answer.p50_us.high / answer.p50_us.value) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (60 * GB, "the database has 60 GB; files of 52 GB were touched"),
        (2 * GB, "the data directory has 2 GB; files of 52 GB were touched, some of them elsewhere"),
    ],
)
def test_files_beside_the_data_directory_are_said(held: int, says: str) -> None:
    of = predictor(data_directory_bytes=held)
    (answer,) = of.predict([Scenario(placement={"log": "ram"})])
    assert any(note.startswith(says) for note in answer.notes)


def test_warnings_of_the_recording_are_in_every_answer_and_refusal() -> None:
    of = predictor(warnings=["the kernel dropped 3 of 1000 events"])
    for answer in of.predict([Scenario(), Scenario(memory_bytes=10**9)]):
        assert "the kernel dropped 3 of 1000 events" in answer.warnings
        assert "reads through mmap are invisible" in answer.warnings


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        (Scenario(memory_bytes=48 << 30), "it was taken in bursts"),
        (Scenario(placement={"data": "ssd-sata-slc-2008"}), "holds 32.0 GB"),
    ],
)
def test_what_the_recording_cannot_answer_is_refused(scenario: Scenario, says: str) -> None:
    refused, other = predictor().predict([scenario, Scenario(placement={"log": "ram"})])
    assert refused.refused
    assert says in refused.refused.message
    assert other.rate_per_s, "the next scenario is answered all the same"


TELLS_MEMORY = {"can_change_memory": True, "page_cache": {"engine_bytes": 256 << 20}}


def test_another_memory_is_as_sure_as_what_is_known_of_reads() -> None:
    of = [predictor(FakeReplay(unsure=unsure, **TELLS_MEMORY)) for unsure in (1.0, 1.2, 2.0)]
    known, unsure, unknown = (predictor.predict([Scenario(memory_bytes=48 << 30)])[0] for predictor in of)
    assert known.rate_per_s
    assert unsure.rate_per_s
    assert unsure.rate_per_s.value == known.rate_per_s.value
    assert unsure.rate_per_s.high > 1.05 * known.rate_per_s.high
    assert any("buffer stays at 256 MiB" in warning for warning in known.warnings)
    assert any("the recording does not tell of some reads" in warning for warning in unsure.warnings)
    assert unknown.refused is None
    assert unknown.bounds_only


def test_the_recorded_memory_raises_no_doubt() -> None:
    fake = FakeReplay(unsure=3.0, **TELLS_MEMORY)
    (same,) = predictor(fake).predict([Scenario(memory_bytes=8 * GB)])
    assert same.rate_per_s
    assert not any("buffer" in warning for warning in same.warnings)


def test_more_clients_and_cores_widen_the_interval_with_the_reason() -> None:
    as_recorded, more, cores = predictor().predict([Scenario(), Scenario(clients=16), Scenario(cores=8)])
    for doubted in (more, cores):
        assert doubted.rate_per_s
        assert as_recorded.rate_per_s
        assert doubted.rate_per_s.high / doubted.rate_per_s.low > 1.3
        assert any("the interval is wider" in warning for warning in doubted.warnings)
    assert as_recorded.rate_per_s.high / as_recorded.rate_per_s.low < 1.05


@pytest.mark.parametrize(("clients", "width"), [(None, 2 * 0.45), (1, 2 * 1.3)])
def test_one_core_widens_the_interval_by_what_was_measured(clients: int | None, width: float) -> None:
    """Six loads were 1.4 times as fast on one core as predicted, those of one client three times."""
    (after,) = predictor().predict([Scenario(clients=clients, cores=1)])
    assert after.rate_per_s
    assert width < math.log(after.rate_per_s.high / after.rate_per_s.low) < 1.4 * width
    (doubt,) = (warning for warning in after.warnings if "threads on one core" in warning)
    assert doubt.endswith("the interval is wider for it, by what six loads on one machine showed")


def test_a_role_without_files_is_said_to_change_nothing() -> None:
    (answer,) = predictor().predict([Scenario(placement={"undo": "ram"})])
    assert any("no file of role undo" in warning for warning in answer.warnings)


def test_work_done_once_is_timed() -> None:
    scenarios = [Scenario(placement={"all": "nvme-dc"}), Scenario(clients=4), Scenario(clients=64)]
    answer, same, more = predictor(FakeReplay(once=True)).predict(scenarios)
    assert same.refused is None and more.refused and "work that is done once" in more.refused.message
    expected_s = 3000 * service_us(dict.fromkeys(REQUESTS, "ssd-nvme-dc")) / 1e6
    assert answer.elapsed_s
    assert answer.elapsed_s.value == pytest.approx(expected_s, rel=0.01)


def test_all_placements_are_ranked_and_idle_roles_left() -> None:
    ranking = rank_placements(predictor(), ["nvme-dc", "sata-dc", "7k2"])
    assert ranking.complete
    assert ranking.tried == 3**3
    assert ranking.left == ["temp"]
    assert any("temp: asked next to nothing" in note for note in ranking.notes)
    best, worst = ranking.ranked[0].placement, ranking.ranked[-1].placement
    assert set(best.values()) == {"ssd-nvme-dc"}
    assert set(worst.values()) == {"hdd-7k2"}
    assert len(ranking.closer) == 10
    assert ranking.closer[0].rate_per_s


def test_a_place_is_not_left_out_beside_a_ranking() -> None:
    asked = ["predict", str(RECORDINGS / "order-entry"), "--place", "log=nvme-dc", "--devices", "gp3"]
    with pytest.raises(TierwiseError, match="--place: --devices ranks every placement"):
        CliRunner().invoke(app, asked, catch_exceptions=False)


def test_a_space_too_large_is_searched_and_said() -> None:
    many = [f"nvme-dc#{number}" for number in range(1, 41)]
    ranking = rank_placements(predictor(), many, closer=1)
    assert not ranking.complete
    assert ranking.tried == 4096
    assert ranking.left == ["temp"]
    assert any("a better placement may exist" in note for note in ranking.notes)


def test_intervals_hold_seeds_and_uncertainties() -> None:
    alone = estimate_from_seeds([100.0, 101.0, 99.0])
    doubted = estimate_from_seeds([100.0, 101.0, 99.0], [0.2])
    assert alone
    assert doubted
    assert alone.low < 99.5
    assert alone.high > 100.5
    assert doubted.high == pytest.approx(100 * 1.22, rel=0.02)
    assert estimate_from_seeds([0.0, 1.0]) is None


def test_a_damaged_file_of_errors_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model_error.toml"
    assert ModelError.read(file) == ModelError()
    file.write_text("[[errors]]\nengine = 3\n", encoding="utf-8")
    with pytest.raises(TierwiseError, match="model_error"):
        ModelError.read(file)


def test_an_answer_with_growth_is_named_by_it_and_not_by_what_follows_from_it() -> None:
    of = predictor(FakeReplay(**TELLS_MEMORY))
    grown = scenario_machine.scenario_with_growth(
        Scenario(growth=3.0, placement={"log": "ram"}), of.run, of.work
    )
    assert scenario_parts(grown) == ["log on ram", "3 times the data and the load"]
    asked = scenario_machine.scenario_with_growth(
        Scenario(growth=3.0, memory_bytes=16 << 30), of.run, of.work
    )
    assert scenario_parts(asked) == ["3 times the data and the load", "16.0 GiB of memory"]
    arriving = scenario_machine.scenario_with_growth(Scenario(growth=3.0, rate_per_s=100.0), of.run, of.work)
    assert scenario_parts(arriving) == ["3 times the data", "100 transactions a second arriving"]
    named = scenario_machine.scenario_with_growth(Scenario(growth=3.0, clients=8), of.run, of.work)
    assert scenario_parts(named) == ["3 times the data", "8 clients"]


@pytest.mark.parametrize(
    ("word", "role"),
    [
        ("wal", "log"),
        ("redo", "log"),
        ("binlog", "archive"),
        ("tables", "data"),
        ("idx", "index"),
        ("Tmp", "temp"),
    ],
)
def test_the_words_of_an_engine_for_a_role_lead_to_its_name(word: str, role: str) -> None:
    with pytest.raises(TierwiseError, match=rf"did you mean {role}\?"):
        parse_placement(f"{word}=nvme-dc")


def test_of_placements_as_fast_that_with_the_fewest_moves_is_first() -> None:
    """The only client of this recording waits for the log alone."""
    ranking = rank_placements(Predictor.open(RECORDINGS / "order-entry", seeds=2), [RECORDED, "nvme-dc"])
    log_alone, both = ({"log": "ssd-nvme-dc", "index": device} for device in (RECORDED, "ssd-nvme-dc"))
    assert [prediction.scenario.placement for prediction in ranking.closer[:2]] == [log_alone, both]


@pytest.mark.parametrize("name", ["keyed-update", "pgbench-10gb"])
def test_the_best_placement_is_the_fastest_of_the_advice(name: str) -> None:
    """A ranking called those within 1 % as fast and advice those within 3 %, so each named another one."""
    opened, devices = Predictor.open(RECORDINGS / name), ["ssd-nvme-dc", "volume-aws-gp3"]
    best = rank_placements(opened, [RECORDED, *devices]).closer[0]
    fastest = PlacementSearch(opened, devices, PlacementCosts.of(opened)).fastest
    moved = {role: device for role, device in best.scenario.placement.items() if device != RECORDED}
    assert fastest and moved == fastest.placement
