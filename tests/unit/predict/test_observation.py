"""Answers from waits only: figures that follow from Little's law, and files that are no observation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.observations import RATE, observation, wait
from tierwise.advise import AdviceOptions, Goal, advise
from tierwise.capture.mysql_session import mysql_session_state
from tierwise.capture.postgres_session import observation_statements
from tierwise.cli import app
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.device_models.profiles import load_profile
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import Predictor, Scenario, coarse_waits, mean_value_analysis
from tierwise.predict.coarse_waits import PlacementWaits
from tierwise.predict.observed_work import log_demand, observed_work_of
from tierwise.predict.usability import judge_usability
from tierwise.recording import OBSERVATION_FILE, write_observation
from tierwise.results import WaitClass


def opened(folder: Path, **changes: Any) -> Predictor:
    folder.mkdir(exist_ok=True)
    write_observation(folder, observation(**changes))
    return Predictor.open(folder, seeds=2, fresh=True)


def test_demands_follow_from_littles_law(tmp_path: Path) -> None:
    work = opened(tmp_path).work
    times = {(wait.category, wait.role): wait.time_us for wait in work.demands.waits}
    assert (work.sessions, work.observed.transactions_per_s) == (10, RATE)
    assert work.demands.think_us == pytest.approx(20_000)
    assert work.demands.cpu_us == pytest.approx(4_000)
    assert times["log_device", Role.LOG] == pytest.approx(8_000)
    assert times["read", Role.DATA] == pytest.approx(26_000)


def test_events_of_one_wait_are_added(tmp_path: Path) -> None:
    """The profile showed the time of the last event alone: 8 µs for the log's device that took 1.1 ms."""
    *others, client, cpu = observation().waits
    client = client.model_copy(update={"sessions": client.sessions - RATE * 2 / 1e3})
    more = wait("IO:WALWrite", "log_sync", 2, Role.LOG)
    waits = opened(tmp_path, waits=[*others, client, cpu, more]).work.demands.waits
    assert len(waits) == len({(each.category, each.role) for each in waits})
    text = CliRunner().invoke(app, ["profile", str(tmp_path)]).output
    assert "10.0 ms" in next(line for line in text.splitlines() if "waits: log device" in line)


def test_the_observed_run_is_reproduced(tmp_path: Path) -> None:
    assert abs(opened(tmp_path).run.error) < 0.05


@pytest.mark.parametrize(
    ("scenario", "roles"),
    [
        (Scenario(clients=20), "log, data"),
        (Scenario(placement={"log": "zero"}), "data"),
        (Scenario(placement={"all": "zero"}), ""),
        (Scenario(cpu_speed=2.0), ""),
    ],
)
def test_devices_that_get_more_requests_than_observed_are_said(
    tmp_path: Path, scenario: Scenario, roles: str
) -> None:
    (answer,) = opened(tmp_path).predict([scenario])
    said = [warning.split(" gets ")[0] for warning in answer.warnings if "times the requests" in warning]
    assert said == ([f"the device of {roles}"] if roles else [])


def test_a_log_that_takes_no_time_leaves_the_rest_of_the_cycle(tmp_path: Path) -> None:
    """100 ms without 50 ms for the log: twice the rate, and at most without the reads beside it too.

    Of 4 ms on processors, 60 % may go with the waits, and of 20 ms of pauses 3 % by chance.
    """
    (answer,) = opened(tmp_path).predict([Scenario(placement={"log": "zero"})])
    assert answer.speedup and answer.bound and answer.from_waits
    assert answer.speedup.value == pytest.approx(2.0, rel=0.1)
    assert answer.speedup.low < 1.8 and answer.speedup.high > 3
    assert answer.speedup.high <= answer.bound.speedup == pytest.approx(100 / (0.97 * 20 + 0.4 * 4), rel=0.01)


def test_named_devices_narrow_an_answer(tmp_path: Path) -> None:
    scenario = Scenario(placement={"data": "ssd-nvme-dc"})
    widths, predictors = (
        [],
        [opened(tmp_path / "a"), opened(tmp_path / "b", devices=dict.fromkeys(Role, "hdd-7k2"))],
    )
    for predictor in predictors:
        (answer,) = predictor.predict([scenario])
        assert answer.speedup
        widths.append(answer.speedup.high / answer.speedup.low)
        sentences = [warning for warning in answer.warnings if "device of data was not named" in warning]
        assert bool(sentences) == (predictor is predictors[0])
    assert widths[1] < widths[0]


def test_a_request_on_a_named_device_is_simulated_once(tmp_path: Path) -> None:
    """Each simulated device is kept, and a worn one holds its whole map: many of them once took 24 GB."""
    predictor = opened(tmp_path, devices=dict.fromkeys(Role, "ssd-sata-dc"))
    scenario = Scenario(placement={"data": "ssd-nvme-dc"})
    predictor.predict([scenario])
    before = coarse_waits._simulated.cache_info().misses
    predictor.predict([scenario])
    assert coarse_waits._simulated.cache_info().misses == before


def test_what_a_transaction_logs_is_what_was_counted() -> None:
    seen = observation(counts={"transactions": 1000, "log_bytes": 250_000})
    work = observed_work_of(seen)
    assert PlacementWaits(seen, work, log_demand(seen, work), {}, "likely", False).log_bytes == 250


def test_slower_devices_are_predicted_to_be_slower(tmp_path: Path) -> None:
    predictor = opened(tmp_path, devices=dict.fromkeys(Role, "ssd-sata-dc"))
    names = ("zero", "ssd-nvme-dc", "volume-aws-gp3", "hdd-7k2")
    answers = predictor.predict([Scenario(placement={"all": name}) for name in names])
    rates = [answer.rate_per_s.value for answer in answers if answer.rate_per_s]
    assert len(rates) == 4 and rates == sorted(rates, reverse=True)
    assert all(answer.p99_us is None for answer in answers)


@pytest.mark.parametrize(("name", "flushed"), [("ssd-sata-dc", False), ("ssd-sata-consumer", True)])
def test_an_append_takes_a_flush_only_where_a_cache_is_volatile(name: str, flushed: bool) -> None:
    profile = load_profile(name)
    wrote = simulate_job(profile, SimulationJob(preset="seqwrite-8k", count=1000))
    write_us = wrote.virtual_s * 1e6 / wrote.ops["write"].count
    took_us = coarse_waits.flush_us(profile.core, 8192, worn=False)
    assert took_us > 1.5 * write_us if flushed else took_us == pytest.approx(write_us, rel=0.05)


@pytest.mark.parametrize("counted", [True, False])
def test_uncounted_flushes_may_be_of_few_transactions(tmp_path: Path, counted: bool) -> None:
    counts = observation().counts
    if not counted:
        counts = {name: count for name, count in counts.items() if name != "log_flushes"}
    seen = observation(counts=counts)
    work = observed_work_of(seen)
    log = log_demand(seen, work)
    placed = {Role.LOG: load_profile("hdd-7k2").core}
    commits = {
        case: PlacementWaits(seen, work, log, placed, case, worn=False).commits for case in ("likely", "best")
    }
    assert commits["likely"] > 0.9
    assert (commits["best"] > 0.9) == counted
    (answer,) = opened(tmp_path, counts=counts).predict([Scenario(placement={"log": "hdd-7k2"})])
    assert any("did not count its log's flushes" in warning for warning in answer.warnings) != counted


def test_waits_for_the_log_invert_to_commits() -> None:
    """A flush of 10 ms and one commit each 20 ms: half is waited on average for the flush in progress."""
    waited = mean_value_analysis.log_wait_us(1.0, 1 / 20_000, 10_000)
    assert waited == pytest.approx(10_000 * (1 + mean_value_analysis.flushing_share(0.5) / 2))
    assert mean_value_analysis.log_wait_us(0.0, 1.0, 10.0) == 0.0


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        (Scenario(rate_per_s=10.0), "arrivals at a rate"),
        (Scenario(memory_bytes=1 << 30), "memory"),
        (Scenario(cores=8), "number of cores"),
    ],
)
def test_what_waits_do_not_tell_is_refused(tmp_path: Path, scenario: Scenario, reason: str) -> None:
    (answer,) = opened(tmp_path, cores=None).predict([scenario])
    assert answer.refused and reason in answer.refused.message


def test_a_goal_for_a_latency_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="waits do not tell latencies"):
        advise(opened(tmp_path), AdviceOptions(["nvme-dc"], goal=Goal.parse("p99=5ms")))


@pytest.mark.parametrize("command", [["recording", "show"], ["recording", "redact", "-o", "copy"]])
def test_what_reads_recordings_alone_says_that_this_is_an_observation(
    command: list[str], tmp_path: Path
) -> None:
    opened(tmp_path)
    error = CliRunner().invoke(app, [*command, str(tmp_path)]).exception
    assert isinstance(error, TierwiseError) and "is an observation" in error.message


def test_a_long_wait_is_written_without_an_exponent(tmp_path: Path) -> None:
    (answer,) = opened(tmp_path, counts={"transactions": 6000}).predict(
        [Scenario(placement={"data": "nvme-dc"})]
    )
    (question,) = [text for text in answer.warnings if "was not named" in text]
    assert "e+" not in question and " to 12\u202f" in question


def test_an_unknown_role_names_the_option() -> None:
    given = ["--dsn", "mysql://user@host", "--on", "lgo=gp3", "-o", "none"]
    refused = CliRunner().invoke(app, ["observe", *given]).exception
    assert str(refused).startswith("--on: unknown role 'lgo'")


def test_every_command_says_that_it_knows_waits_only(tmp_path: Path) -> None:
    predictor = opened(tmp_path)
    for arguments in (
        ["profile", str(tmp_path), "--no-savings"],
        ["predict", str(tmp_path), "--place", "log=nvme-dc"],
        ["advise", str(tmp_path), "--devices", "nvme-dc,gp3", "--seeds", "2"],
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert "from waits only" in result.output.lower()
    assert (
        judge_usability(predictor)
        .sentences[0]
        .startswith("This observation is usable for answers from waits only")
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"schema_version": 2}, "reads up to 1"),
        ({"devices": {"log": "../../etc/passwd.toml"}}, "devices"),
        ({"ticks": 0}, "ticks"),
        ({"running": "NaN"}, "running"),
        ({"sizes": {"log": -1}}, "sizes"),
        ({"surprise": 1}, "surprise"),
        (
            {"waits": [{"event": "x", "wait_class": "cpu", "sessions": 60_000}] * 2},
            "waits: .*120000 sessions, above",
        ),
    ],
)
def test_a_damaged_file_is_refused_in_a_line(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    write_observation(tmp_path, observation())
    file = tmp_path / OBSERVATION_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(TierwiseError, match=expected) as raised:
        Predictor.open(tmp_path)
    assert "\n" not in str(raised.value)


def test_no_count_of_transactions_leaves_the_profile(tmp_path: Path) -> None:
    write_observation(tmp_path, observation(counts={}, counted_s=0.0))
    with pytest.raises(TierwiseError, match="counts no transaction"):
        Predictor.open(tmp_path)
    result = CliRunner().invoke(app, ["profile", str(tmp_path)])
    assert result.exit_code == 0 and "counts no transaction" in result.output


@pytest.mark.parametrize(
    ("number", "missing"),
    [(130_000, ["pg_stat_wal", "pg_stat_io"]), (150_000, ["pg_stat_io"]), (170_000, []), (180_000, [])],
)
def test_a_version_without_a_view_is_named(number: int, missing: list[str]) -> None:
    views, limits = observation_statements(number, "X")
    assert len(limits) == len(missing)
    assert all(name in limit for name, limit in zip(missing, limits, strict=True))
    assert not any(f"FROM {name}" in view for view in views for name in missing)


@pytest.mark.parametrize(
    ("seen", "expected", "role"),
    [
        (("Sleep", "", None, None, 0), "client", None),
        (("Query", "Updating", None, None, 1), "lock", None),
        (("Query", "Waiting for table metadata lock", None, None, 0), "lock", None),
        (("Query", "Commit", None, None, 0), "log_lock", Role.LOG),
        (("Query", "waiting for handler commit", None, None, 0), "log_lock", Role.LOG),
        (
            ("Query", "Sending data", "wait/io/file/innodb/innodb_data_file", "read", 0),
            "data_read",
            Role.DATA,
        ),
        (("Query", "x", "wait/io/file/innodb/innodb_log_file", "sync", 0), "log_sync", Role.LOG),
        (("Query", "x", "wait/io/file/sql/binlog", "sync", 0), "data_write", Role.ARCHIVE),
        (("Query", "x", "wait/io/file/innodb/innodb_temp_file", "write", 0), "data_write", Role.TEMP),
        (("Execute", "Sending data", None, None, 0), "cpu", None),
        (("Query", "x", "wait/io/file/myisam/dfile", "read", 0, "/db/shop/part.MYD"), "data_read", Role.DATA),
        (
            ("Query", "x", "wait/io/file/myisam/kfile", "read", 0, "/db/shop/part.MYI"),
            "data_read",
            Role.INDEX,
        ),
        (("Query", "x", "wait/io/file/aria/MAD", "read", 0, "/db/shop/part.MAD"), "data_read", Role.DATA),
        (
            ("Query", "x", "wait/io/file/aria/MAD", "read", 0, "/tmp/#sql-temptable-2c-1-0.MAD"),
            "data_read",
            Role.TEMP,
        ),
        (
            ("Query", "x", "wait/io/file/innodb/innodb_data_file", "read", 0, "./undo001"),
            "data_read",
            Role.UNDO,
        ),
        (("Query", "x", "wait/io/file/sql/io_cache", "write", 0, "/tmp/MYfd=23"), "data_write", Role.TEMP),
    ],
)
def test_states_of_mariadb_and_mysql(seen: tuple[Any, ...], expected: WaitClass, role: Role | None) -> None:
    assert mysql_session_state(*seen)[1:] == (expected, role)
