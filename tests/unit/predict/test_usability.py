"""What a recording is good for: one verdict for record, profile and predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.fake_replay import FakeReplay, about, predictor
from support.recording_factory import write_recording
from tierwise import _core
from tierwise.cli import app
from tierwise.predict import Predictor
from tierwise.predict.rate_unit import counted_to_shown_ratio, parse_rate_unit
from tierwise.predict.usability import Usability, judge_usability, replay_and_judge
from tierwise.recording import TABLES


def of(fake: FakeReplay | None = None, unit: Any = None, **fields: Any) -> Predictor:
    return predictor(fake, unit=unit, **fields)


def judged(fake: FakeReplay | None = None, **fields: Any) -> Usability:
    return judge_usability(of(fake, **fields))


def shown_rate() -> float:
    return of().work.observed.transactions_per_s


def test_a_good_recording_is_usable() -> None:
    usability = judged()
    assert usability.usable
    assert usability.sentences == ["This recording is usable."]


@pytest.mark.parametrize(
    ("fake", "fields", "reason"),
    [
        (FakeReplay(transactions=12), {}, "12 transactions were seen, 100 are needed"),
        (None, {"losses": {"recorded_events": 900, "lost_events": 100}}, "dropped 10\u00a0% of the events"),
        (None, {"foreign_cpu_share": 0.3}, "other programs used 30\u00a0% of the processors"),
        (FakeReplay(error=0.3), {}, "+30\u00a0%"),
        (FakeReplay(footprints={"data": 1}), {"counters": {"log_bytes": 10**9}}, "1,000 MB of log"),
    ],
    ids=["few", "lost", "foreign", "replay", "log"],
)
def test_what_makes_a_recording_useless(fake: FakeReplay | None, fields: dict[str, Any], reason: str) -> None:
    usability = judged(fake, **fields)
    assert not usability.usable
    (text,) = usability.reasons
    assert reason in text
    assert usability.fixes[0]
    assert usability.sentences[0] == "This recording is not usable."


TENTH = {"duration_s": 20.0, "bursts": [{"start_ns": 0, "end_ns": 2_000_000_000}]}
WHOLE = TENTH | {"duration_s": 2.0}


def test_a_sample_of_few_transactions_is_no_job_done_once() -> None:
    """Twelve updates with a pause after each were "done in 1.87 s", and nothing said that they are few."""
    usability = judged(FakeReplay(once=True, sessions=1, transactions=12), **TENTH)
    assert not usability.usable
    assert usability.reasons == ["12 transactions were seen, 100 are needed"]
    assert "a job that is done once, with --duty 1" in usability.fixes[0]


def test_slices_of_an_idle_session_are_no_transactions() -> None:
    """A session whose heartbeat no burst met had "7 transactions", one for each burst."""
    observed = {"turns_per_s": 4.8, "transactions_per_s": 4.8, "sliced": True}
    fake = FakeReplay(once=True, sessions=1, turns=7, transactions=7, observed=observed)
    usability = judged(fake, **TENTH)
    assert not usability.usable
    assert usability.reasons == ["no request and no commit was seen, 100 are needed"]
    assert "record while the sessions work, for longer, or with a greater --duty" in usability.fixes[0]


def test_a_job_recorded_whole_has_no_least_number() -> None:
    assert judged(FakeReplay(once=True, sessions=1, transactions=12), **WHOLE).reasons == []


def test_a_sample_of_one_long_statement_says_what_its_times_are() -> None:
    usability = judged(FakeReplay(once=True, sessions=1, transactions=1), **TENTH)
    assert usability.usable
    assert "times are of the sample" in usability.reasons[0]


def test_a_hypervisor_that_takes_processors_is_said() -> None:
    usability = judged(stolen_cpu_share=0.13)
    assert usability.usable
    assert usability.reasons == ["the hypervisor gave 13\u00a0% of the processors to other machines"]


def test_a_recording_of_the_hypervisor_is_not_usable() -> None:
    """All processors stolen was a hint, below an advice."""
    usability = judged(stolen_cpu_share=1.0)
    assert not usability.usable
    assert usability.fixes == ["record at another hour"]


_SHOWN = {"turns_per_s": 100.0, "transactions_per_s": 100.0}


def test_waits_for_cores_below_a_limit_are_of_the_limit() -> None:
    """With a quota of a tenth of a core, 80 % of the time was "waiting for a core: more cores"."""
    machine = about().machine.model_dump()
    waiting = FakeReplay(observed={**_SHOWN, "shares": {"runnable": 0.8, "client": 0.2}})
    usability = judged(waiting, machine=machine | {"cores": 2, "core_limit": 0.1})
    assert usability.usable
    reason = "sessions waited for a core in 80\u00a0% of their time, and the server may use 0.1 of 2"
    assert usability.reasons == [reason]
    assert "raise the quota" in usability.fixes[0]
    assert judged(waiting, machine=machine).reasons == []
    assert judged(machine=machine | {"cores": 2, "core_limit": 0.1}).reasons == []


def test_a_limit_of_block_io_and_a_standby_are_doubts() -> None:
    limited = judged(machine=about().machine.model_dump() | {"io_limits": ["60 writes a second"]})
    assert limited.usable and "allows the server 60 writes a second" in limited.reasons[0]
    standby = judged(warnings=[_core.STANDBY])
    assert standby.usable and standby.reasons[0].startswith("the server is a standby")


def test_transactions_that_are_not_told_make_rates_requests() -> None:
    usability = judged(FakeReplay(transactions=0))
    assert usability.usable
    assert "rates count requests" in usability.reasons[0]


def test_a_count_that_agrees_changes_nothing() -> None:
    predictor = of(transactions=round(60 * shown_rate() * 1.02))
    assert predictor.run.rate_per_s == shown_rate()
    assert judge_usability(predictor).reasons == []


def test_a_count_that_no_rate_follows_is_not_said_to_correct_them() -> None:
    """The core follows a count unless bursts differ by as much: then the rates are those of the events."""
    predictor = of(transactions=round(60 * shown_rate() * 1.2))
    assert predictor.run.rate_per_s == shown_rate()
    (remark,) = judge_usability(predictor).remarks
    assert "0.83 times the transactions that were counted" in remark.reason
    assert "rates follow the events" in remark.fix


def test_bursts_that_recording_slowed_are_not_miscounted() -> None:
    """Of 60 s, 6 were traced at half the rate: the count is lower than the rate without recording tells."""
    cost = {"rate_ratio": 0.5, "rate_ratio_low": 0.45, "rate_ratio_high": 0.55}
    bursts = [{"start_ns": 0, "end_ns": 6_000_000_000}]
    recorded = about(cost=cost, bursts=bursts, transactions=round(57 * shown_rate()))
    assert counted_to_shown_ratio(recorded, of().work) == pytest.approx(1.0, abs=0.01)


def test_bursts_that_do_not_tell_what_recording_cost_are_a_doubt() -> None:
    usability = judged(cost={"rate_ratio": 0.94, "rate_ratio_low": 0.61, "rate_ratio_high": 1.46})
    assert usability.usable
    assert usability.reasons == [
        "the bursts do not tell what recording cost: predictions start from the rate within them"
    ]
    assert judged(cost={"rate_ratio": 0.94, "rate_ratio_low": 0.9, "rate_ratio_high": 0.98}).reasons == []


def test_a_replay_that_needs_more_processor_time_than_was_measured_is_a_doubt() -> None:
    """TPC-B by 3 clients on a virtual disk: its answers for an NVMe SSD were half of what was measured."""
    cost = {"rate_ratio": 0.94, "rate_ratio_low": 0.9, "rate_ratio_high": 0.98}
    known = cost | {"cpu_ratio": 1.1, "cpu_ratio_low": 1.05, "cpu_ratio_high": 1.15}
    slow = judged(FakeReplay(cpu_scale=1.6), cost=known)
    assert slow.usable and "with 1.8 times the measured processor time" in slow.reasons[0]
    assert "with 0.5 times" in judged(FakeReplay(cpu_scale=0.5), cost=cost).reasons[0]
    assert judged(FakeReplay(cpu_scale=1.3), cost=known).reasons == []


def test_requests_are_counted_where_they_are_asked_for() -> None:
    predictor = of(unit="requests", transactions=1)
    assert predictor.run.unit == "requests"
    assert predictor.run.rate_per_s == pytest.approx(3 * shown_rate())
    with pytest.raises(Exception, match="use one of transactions, requests"):
        parse_rate_unit("queries")


def test_what_cannot_be_replayed_is_not_usable(tmp_path: Path) -> None:
    empty: dict[str, list[tuple[object, ...]]] = {"threads": []}
    usability = replay_and_judge(write_recording(tmp_path / "r", empty))
    assert not usability.usable
    assert "no session that did anything" in usability.reasons[0]


def test_a_recording_that_ended_before_its_first_burst_says_so(tmp_path: Path) -> None:
    """It was advised to check the rules for classes of threads."""
    nothing: dict[str, list[tuple[object, ...]]] = {table: [] for table in TABLES}
    usability = replay_and_judge(write_recording(tmp_path / "r", nothing, bursts=[]))
    assert usability.reasons == ["the recording ended before its first burst"]
    assert "--duty" in usability.fixes[0]


def test_profile_and_predict_say_the_same(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r", foreign_cpu_share=0.5)
    expected = replay_and_judge(path).sentences
    assert expected[0] == "This recording is not usable."
    for command in ("profile", "predict"):
        shown = CliRunner().invoke(app, [command, str(path)]).stdout
        first, *lines = shown.splitlines()
        assert first.startswith("This recording is not usable"), command
        assert lines[: len(expected) - 1] == expected[1:] and lines[-1] == expected[0], command
