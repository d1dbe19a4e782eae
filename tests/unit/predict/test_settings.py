"""Settings of an engine in a scenario: which are known, what they ask of the simulator, what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from typer.testing import CliRunner

from support.fake_replay import LEFT_OUT, REQUESTS, SERVICE_US, FakeReplay, about, predictor, service_us
from support.paths import RECORDINGS
from tierwise.advise.durability import shipped_power_cuts
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.model.numbers import ratio_text
from tierwise.model.placement import Role
from tierwise.predict import Prediction, Predictor, Scenario, database_settings
from tierwise.predict.answer import SETTINGS_UNCALIBRATED
from tierwise.predict.bounds import rate_upper_bound
from tierwise.predict.model_error import ModelError
from tierwise.predict.replayer import Replayer
from tierwise.predict.setting_data import engine_settings
from tierwise.report.recording.prediction_report import prediction_sentence

ENGINES = ("postgres", "mariadb", "mysql", "sqlite", "rocksdb")
OFF = "synchronous_commit=off"


def change(text: str, engine: str = "postgres", **recorded: str) -> dict[str, Any]:
    return database_settings.settings_for_simulator([text], about(engine=engine, settings=recorded))


def answer(
    texts: list[str], counters: dict[str, int] | None = None, engine: str = "postgres", **recorded: str
) -> Prediction:
    of_it = about(engine=engine, settings=recorded, counters=counters or {})
    of = Predictor(of_it, [], Replayer(FakeReplay()), model_error=ModelError())
    return of.predict([Scenario(settings=texts)])[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_shipped_setting_is_whole_and_has_its_source(engine: str) -> None:
    name, known = engine_settings(engine)
    assert name == engine and known
    assert all(
        setting.source.startswith("https://") and setting.loses and setting.there and setting.back
        for setting in known
    )
    texts = [setting.text for setting in known]
    assert len(texts) == len(set(texts))
    tried = {cut.durability for cut in shipped_power_cuts().cuts if cut.engine == engine and not cut.durable}
    assert {setting.cuts for setting in known if setting.cuts} <= tried
    for setting in known:
        assert all(setting.has(value) for value in setting.tried({}))
        assert bool(setting.advised) == (setting.range is not None)


def test_a_setting_becomes_what_the_simulator_is_asked() -> None:
    fifth = {"unflushed": {"flush_period_us": 200_000, "writes": False}}
    assert change(OFF) == change("Synchronous_Commit = OFF") == fifth
    assert change(OFF, wal_writer_delay="1s")["unflushed"]["flush_period_us"] == 1_000_000
    assert change(OFF, wal_writer_delay="soon") == fifth, "what cannot be read is the usual one"
    assert change("synchronous_commit=local") == {"without_replica": True}
    assert change("commit_delay=500") == {"commit_delay": {"time_us": 500, "siblings": 5}}
    assert change("commit_delay=0", commit_siblings="7")["commit_delay"] == {"time_us": 0, "siblings": 7}
    assert change("commit_delay=1", commit_siblings="²")["commit_delay"]["siblings"] == 5
    second = {"flush_period_us": 1_000_000}
    assert change("innodb_flush_log_at_trx_commit=2", "mariadb")["unflushed"] == {**second, "writes": True}
    assert change("innodb_flush_log_at_trx_commit=0", "mariadb")["unflushed"] == {**second, "writes": False}
    assert change("sync_binlog=100", "mariadb") == {"second_log_every": 100}
    assert change("sync=false", "rocksdb")["unflushed"]["writes"]
    both = database_settings.settings_for_simulator(
        ["sync_binlog=0", "innodb_flush_log_at_trx_commit=2"], about(engine="mariadb")
    )
    assert set(both) == {"second_log_every", "unflushed"}


@pytest.mark.parametrize(
    ("texts", "engine", "says"),
    [
        (["synchronous_commit"], "postgres", "is not NAME=VALUE: use one of synchronous_commit=off, "),
        (["=off"], "postgres", "is not NAME=VALUE"),
        (["synchronous_comit=off"], "postgres", "did you mean synchronous_commit=off"),
        (["fsync=off"], "postgres", "fsync=off of postgres cannot be predicted: use one of "),
        (["commit_delay=100001"], "postgres", "cannot be predicted"),
        (["commit_delay=x"], "postgres", "predicted: give commit_delay a whole number from 0 to 100000"),
        (["max_wal_size=x"], "postgres", "give max_wal_size a size of at most 2147483647MB, more"),
        (["checkpoint_timeout=x"], "postgres", "give checkpoint_timeout a duration of at most"),
        (["wal_compression=7"], "postgres", "give wal_compression on or pglz or lz4 or zstd"),
        (["synchronous_commit=1"], "postgres", "give synchronous_commit off or local"),
        (["commit_delay=-1"], "postgres", "cannot be predicted"),
        (["commit_delay=" + "9" * 5000], "postgres", "cannot be predicted"),
        (["sync_binlog=1"], "mariadb", "give sync_binlog 0 or a whole number from 2"),
        ([OFF, "synchronous_commit=local"], "postgres", "synchronous_commit is set twice"),
        ([OFF], "duckdb", "no setting of duckdb can be predicted"),
        ([OFF], "mariadb", "of mariadb cannot be predicted"),
    ],
)
def test_what_is_no_setting_of_the_engine_is_an_error(texts: list[str], engine: str, says: str) -> None:
    of = predictor(engine=engine)
    with pytest.raises(TierwiseError) as raised:
        of.predict([Scenario(settings=texts)])
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("text", "engine", "recorded"),
    [
        (OFF, "postgres", {"synchronous_commit": "OFF"}),
        ("commit_delay=1000", "postgres", {"commit_delay": "1000"}),
        ("innodb_flush_log_at_trx_commit=2", "mariadb", {"innodb_flush_log_at_trx_commit": "0"}),
        ("sync_binlog=100", "mariadb", {"sync_binlog": "0"}),
        ("synchronous=normal", "sqlite", {"journal_mode": "wal", "synchronous": "off"}),
    ],
)
def test_what_is_so_in_the_recording_is_refused(text: str, engine: str, recorded: dict[str, str]) -> None:
    why = database_settings.settings_refusal([text], about(engine=engine, settings=recorded))
    assert why and "in the recording, so that it changes nothing" in why.message


def test_a_setting_that_needs_another_is_refused_without_it() -> None:
    for recorded in ({}, {"journal_mode": "delete"}):
        why = database_settings.settings_refusal(
            ["synchronous=NORMAL"], about(engine="sqlite", settings=recorded)
        )
        assert why and "journal_mode=wal" in why.message
    with_log = about(engine="sqlite", settings={"journal_mode": "wal", "synchronous": "full"})
    assert database_settings.settings_refusal(["synchronous=NORMAL"], with_log) is None


def test_recorded_files_show_what_a_setting_needs() -> None:
    for roles, refused in ((["data", "log"], False), (["data", "doublewrite"], True)):
        replay = FakeReplay(footprints=dict.fromkeys(roles, 10**9))
        of = predictor(replay, engine="sqlite")
        assert (of.refusal(Scenario(settings=["synchronous=NORMAL"])) is not None) == refused
        told = about(engine="sqlite", settings={"journal_mode": "delete"})
        kept = Predictor(told, [], Replayer(replay), model_error=ModelError())
        assert kept.refusal(Scenario(settings=["synchronous=NORMAL"])), "what is recorded counts"


def test_an_answer_has_an_interval_what_is_lost_and_that_none_was_validated() -> None:
    prediction = answer([OFF], synchronous_commit="on", wal_writer_delay="100ms")
    places = dict.fromkeys(REQUESTS, "recorded")
    times = service_us(places) / service_us(places, log_waits=False)
    assert prediction.speedup and prediction.speedup.low < prediction.speedup.value < prediction.speedup.high
    assert prediction.speedup.value == pytest.approx(times, rel=0.01)
    assert prediction.mean_value_per_s is None, "mean-value analysis knows commits that wait alone"
    assert prediction.scenario.changes == ["settings"]
    assert SETTINGS_UNCALIBRATED in prediction.warnings
    assert any("three times wal_writer_delay" in text and "0.3 s" in text for text in prediction.warnings)
    assert not any("does not tell synchronous_commit" in text for text in prediction.warnings)
    assert any("does not tell synchronous_commit" in text for text in answer([OFF]).warnings)
    assert any(
        "gained 1.6 to 3.6 times the figure" in text
        for text in answer(["sync=false"], engine="rocksdb").warnings
    )


def test_a_validated_change_of_settings_has_no_such_warning() -> None:
    error = {"engine": "postgres", "path": "emulated→emulated", "what": "rate", "changes": ["settings"]}
    learnt = ModelError.model_validate(
        {"errors": [{**error, "cases": 50, "half_width": 0.1, "calibrated": "2026-11-27"}]}
    )
    prediction = predictor(model_error=learnt).predict([Scenario(settings=[OFF])])[0]
    assert prediction.validated and SETTINGS_UNCALIBRATED not in prediction.warnings


def waiting() -> Predictor:
    """Of transactions that wait for the log and for reads, on two devices."""
    demands = {
        "server_cpu_us": 200.0,
        "waits": [
            {"category": "log_device", "role": "log", "time_us": 4000.0},
            {"category": "read", "role": "data", "time_us": 2000.0},
        ],
    }
    devices = [{"profile": "a", "roles": ["log"]}, {"profile": "b", "roles": ["data", "index", "temp"]}]
    return predictor(FakeReplay(demands=demands, devices=devices))


def test_the_bound_lets_the_waits_for_the_log_go() -> None:
    of = waiting()
    prediction = of.predict([Scenario(settings=[OFF])])[0]
    assert prediction.bound and prediction.bound.because.startswith("all waits on the log, for locks")
    # 2 ms of reads stay, and 8 % of the processor time.
    assert prediction.bound.rate_per_s == pytest.approx(4e6 / (2000 + 16), rel=0.001)


def test_the_interval_holds_that_none_or_nearly_all_processor_time_goes_with_the_wait() -> None:
    prediction = waiting().predict([Scenario(settings=[OFF], cpu_speed=0.1)])[0]
    assert prediction.rate_per_s
    reads_us = 0.7 * SERVICE_US["recorded"]
    least, middle, most = (4e6 / (2000 * share + reads_us) for share in (1.0, 0.54, 0.08))
    assert prediction.rate_per_s.low <= 1.01 * least
    assert prediction.rate_per_s.value == pytest.approx(middle, rel=0.01)
    assert prediction.rate_per_s.high >= 0.99 * most
    assert any("how much processor time goes with the wait" in text for text in prediction.warnings)


def test_the_interval_holds_each_end_of_a_device_with_each_end_of_processor_time() -> None:
    """The slower end of a range of rates was tried with the least processor time alone."""
    of = waiting()

    def ends(**asked: Any) -> list[tuple[str | None, float]]:
        requests = of.requests(Scenario(**asked), [0])
        return [(each.end, round(each.scenario.cpu_speed, 3)) for each in requests if not each.is_likely]

    on_ranged = {"data": "ssd-nvme-consumer"}
    (_, fast), (_, slow) = ends(settings=[OFF])
    assert fast > slow == 1.0
    assert ends(placement=on_ranged) == [("fast", 1.0), ("slow", 1.0)]
    assert sorted(ends(placement=on_ranged, settings=[OFF])) == sorted(
        (end, cpu_speed) for end in ("fast", "slow") for cpu_speed in (slow, fast)
    )


def test_waits_alone_do_not_tell_what_a_setting_does() -> None:
    prediction = predictor(FakeReplay(from_waits=True)).predict([Scenario(settings=[OFF])])[0]
    assert prediction.refused and "waits only" in prediction.refused.message


def test_the_command_combines_settings_and_placements() -> None:
    asked = ["predict", str(RECORDINGS / "order-entry"), "--seeds", "2", "--set", OFF]
    text = CliRunner().invoke(app, asked)
    assert text.exit_code == 0 and "With synchronous_commit=off: " in text.stdout
    moved = CliRunner().invoke(app, [*asked, "--place", "log=nvme-dc", "--format", "json"])
    (prediction,) = json.loads(moved.stdout)["predictions"]
    assert prediction["scenario"]["settings"] == [OFF] and prediction["scenario"]["placement"] == {
        "log": "nvme-dc"
    }
    table = CliRunner().invoke(app, [*asked, "--format", "csv"]).stdout
    assert OFF in table
    local = CliRunner().invoke(app, [*asked[:-1], "synchronous_commit=local"])
    assert local.exit_code == 1 and "waits for a replica" in " ".join(local.stdout.split())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--devices", "nvme-dc"], "--set: placements are ranked with the recorded settings"),
        ([str(RECORDINGS / "small-objects"), "--place", "order-entry.log=nvme-dc#1"], "--set is for one"),
    ],
)
def test_the_command_says_where_settings_are_not_asked(more: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["predict", str(RECORDINGS / "order-entry"), "--set", OFF, *more])
    assert done.exit_code != 0 and says in str(done.exception) + done.output


APART = "max_wal_size=8GB"
TOLD = {"max_wal_size": "1GB", "checkpoint_timeout": "5min", "checkpoint_completion_target": "0.9"}
MB = 10**6


@pytest.mark.parametrize(
    ("text", "engine", "left_out", "roles"),
    [
        ("wal_compression=lz4", "postgres", ["least_log"], {"log", "archive"}),
        (APART, "postgres", ["least_log", "without_page_writes"], {"log", "data", "system"}),
        ("checkpoint_timeout=1h", "postgres", ["least_log", "without_page_writes"], {"log", "index"}),
        ("innodb_log_file_size=4G", "mariadb", ["without_page_writes"], {"doublewrite", "undo"}),
    ],
)
def test_what_a_recording_does_not_tell_has_a_bound_alone(
    text: str, engine: str, left_out: list[str], roles: set[str]
) -> None:
    assert change(text, engine) == dict.fromkeys(left_out, True)
    assert roles <= set(database_settings.roles_of_ending_waits([text]))
    assert (Role.DATA in database_settings.roles_of_ending_waits([text])) == (
        "without_page_writes" in left_out
    )
    prediction = answer([text], engine=engine)
    assert prediction.rate_per_s is None and prediction.speedup is None and prediction.refused
    assert "tells a bound alone, since a recording" in prediction.refused.message
    times = math.prod(1 / LEFT_OUT[limit] for limit in left_out)
    assert prediction.bound and times < prediction.bound.speedup < 1.5 * times, "the model's error is in it"
    assert prediction.bound.because.startswith(f"{ratio_text(times)} times in a simulation in which no ")
    assert any("nothing is lost: after a crash" in warning for warning in prediction.warnings)
    assert prediction_sentence(prediction).startswith(f"With {text}: at most ")


class NoPages(FakeReplay):
    """Work that writes the log alone."""

    def _outcome(self, *asked: Any) -> dict[str, Any]:
        outcome = super()._outcome(*asked)
        return outcome | {"io": [io for io in outcome["io"] if io["role"] == "log"]}


def test_there_is_no_bound_where_no_checkpoint_was_recorded() -> None:
    for text, of_pages in ((APART, True), ("wal_compression=on", False)):
        (without,) = predictor(NoPages()).predict([Scenario(settings=[text])])
        (with_pages,) = predictor().predict([Scenario(settings=[text])])
        assert with_pages.bound and without.refused and (without.bound is None) == of_pages
        assert ("is not known: no write of a page" in without.refused.message) == of_pages


def test_a_bound_holds_beside_a_predicted_setting_and_a_move() -> None:
    both = answer([OFF, APART])
    assert both.bound and both.refused and both.bound.speedup > answer([APART]).bound.speedup  # type: ignore[union-attr]
    of = predictor()
    alone, moved = of.predict(
        [Scenario(settings=[APART]), Scenario(settings=[APART], placement={"log": "nvme-dc"})]
    )
    assert alone.bound and moved.bound and moved.bound.speedup > alone.bound.speedup


def test_a_bound_without_the_model_lets_reads_go_only_where_fewer_pages_are_written() -> None:
    work = waiting().work
    of_log, of_pages = (rate_upper_bound(Scenario(settings=[text]), work, 100.0) for text in (OFF, APART))
    assert of_log and of_pages and of_pages.rate_per_s > 10 * of_log.rate_per_s
    assert of_log.because == "all waits on the log, for locks and for cores gone"


@pytest.mark.parametrize(
    ("text", "recorded", "counters", "says"),
    [
        ("max_wal_size=1GB", TOLD, {}, "max_wal_size is 1GB in the recording, no less"),
        ("checkpoint_timeout=300", TOLD, {}, "checkpoint_timeout is 5min in the recording, no less"),
        # 0.1 MB a second fill 0.57 GB in 94 minutes, 10 MB a second in less than one.
        (APART, TOLD, {"log_bytes": 6 * MB}, "0.100 MB of log a second, checkpoint_timeout (5min) begins"),
        (
            "checkpoint_timeout=1h",
            TOLD,
            {"log_bytes": 600 * MB},
            "max_wal_size (1GB) begins checkpoints first",
        ),
        (APART, TOLD, {"log_bytes": 0}, "checkpoint_timeout (5min) begins checkpoints first"),
        ("wal_compression=on", {}, {"full_page_images": 0}, "no full-page image was logged"),
        ("wal_compression=zstd", {"wal_compression": "lz4"}, {}, "wal_compression is lz4 in the recording"),
    ],
)
def test_what_changes_nothing_has_no_bound(
    text: str, recorded: dict[str, str], counters: dict[str, int], says: str
) -> None:
    prediction = answer([text], counters, **recorded)
    assert prediction.bound is None and prediction.refused and says in prediction.refused.message


@pytest.mark.parametrize(
    ("texts", "counters"),
    [
        ([APART], {"log_bytes": 600 * MB}),
        (["checkpoint_timeout=1h"], {"log_bytes": 6 * MB}),
        (["checkpoint_timeout=1h", APART], {"log_bytes": 600 * MB}),
        ([APART], {}),
    ],
)
def test_the_setting_that_begins_checkpoints_has_a_bound(texts: list[str], counters: dict[str, int]) -> None:
    assert answer(texts, counters, **TOLD).bound is not None


def test_the_log_that_a_crash_has_to_replay_is_told() -> None:
    def lost(text: str, engine: str = "postgres", log_bytes: int | None = None, **recorded: str) -> str:
        counters = {} if log_bytes is None else {"log_bytes": log_bytes}
        (setting,) = database_settings.choose_settings(
            [text], about(engine=engine, settings=recorded, counters=counters)
        )
        assert setting.loses_s == 0
        return setting.loses

    assert "up to about 8.00 GiB of log are replayed" in lost(APART)
    assert "up to about 4.00 GiB of log are replayed" in lost("innodb_log_file_size=4G", "mariadb")
    # 1 MiB a second for 1,000 s, and for the 900 s in which the checkpoint writes.
    assert "about 1.86 GiB" in lost("checkpoint_timeout=1000", log_bytes=60 << 20)
    assert "about 1.00 GiB" in lost("checkpoint_timeout=1000", log_bytes=60 << 20, **TOLD)
    assert "more log than now is replayed" in lost("checkpoint_timeout=1000")


def test_the_share_of_images_is_told_where_it_was_counted() -> None:
    counters = {"log_bytes": 10 * 8192, "full_page_images": 4}
    assert "full-page images are at most 40\u00a0% of the log's bytes" in answer([APART], counters).warnings
    assert not any("images are at most" in text for text in answer([APART], {"log_bytes": 8192}).warnings)


def test_a_flush_method_is_not_known_and_why() -> None:
    prediction = answer(["innodb_flush_method=fsync"], engine="mariadb", innodb_flush_method="O_DIRECT")
    assert prediction.bound is None and prediction.refused
    assert prediction.refused.message.startswith(
        "what innodb_flush_method does is not known from a recording: it decides whether the page cache"
    )


@pytest.mark.parametrize("text", ["max_wal_size=soon", "max_wal_size=²", "checkpoint_timeout=25h"])
def test_what_is_no_size_or_duration_of_the_engine_is_an_error(text: str) -> None:
    with pytest.raises(TierwiseError, match="cannot be predicted"):
        answer([text])
