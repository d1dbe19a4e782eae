"""A recording of the wrong thing is not usable: a file without a role, another server's count, a client."""

from __future__ import annotations

from typing import Any

import pytest

from support.fake_replay import MACHINE, FakeReplay, predictor
from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor, Scenario
from tierwise.predict.usability import Usability, judge_usability

FILE = {"path": "/srv/l/b.000001", "flush_share": 0.5, "wait_share": 0.4, "is_like_log": True}


def of(fake: FakeReplay | None = None, **fields: Any) -> Predictor:
    return predictor(fake, **fields)


def judged(fake: FakeReplay | None = None, **fields: Any) -> Usability:
    return judge_usability(of(fake, **fields))


def counted(factor: float, **fields: Any) -> dict[str, Any]:
    """A count of the engine that is so many times what the events show."""
    transactions = round(60 * of().work.observed.transactions_per_s * factor)
    return {"transactions": transactions, "counters": {"commits": transactions}, **fields}


def test_a_file_without_a_role_is_named_with_the_option_that_gives_it_one() -> None:
    usability = judged(FakeReplay(unassigned=[FILE]))
    assert not usability.usable
    (reason,), (fix,) = usability.reasons, usability.fixes
    assert reason.startswith("/srv/l/b.000001, which is written like a log, takes 50\u00a0% of the flushes")
    assert "--role /srv/l/b.000001=log" in fix


def test_a_file_that_is_waited_for_is_named_too() -> None:
    waited = FILE | {"flush_share": 0.01, "is_like_log": False}
    (reason,) = judged(FakeReplay(unassigned=[waited])).reasons
    assert "takes 40\u00a0% of the waits for files" in reason


@pytest.mark.parametrize("factor", [0.03, 0.4, 2.5, 30.0])
def test_a_count_that_differs_by_a_factor_is_of_something_else(factor: float) -> None:
    usability = judged(**counted(factor))
    assert not usability.usable
    assert "times the transactions that the events show" in usability.reasons[0]
    assert "DSN" in usability.fixes[0]


def test_a_count_that_the_rates_follow_already_is_judged_too() -> None:
    observed = {"turns_per_s": 300.0, "transactions_per_s": 100.0, "counted_per_shown": 0.03}
    usability = judged(FakeReplay(observed=observed), transactions=6000, counters={"commits": 6000})
    assert not usability.usable
    assert "0.03 times" in usability.reasons[0]


@pytest.mark.parametrize(("turns", "usable"), [(52_288, False), (3, True)])
def test_many_requests_of_a_job_that_end_nothing_are_no_job(turns: int, usable: bool) -> None:
    """Nine ends were seen of a load that reads only. A job may call a procedure that commits."""
    observed = {"turns_per_s": 300.0, "transactions_per_s": 100.0, "counted_per_shown": 562.5}
    fake = FakeReplay(observed=observed, once=True, turns=turns)
    usability = judged(fake, transactions=6000, counters={"commits": 6000})
    assert usability.usable == usable
    assert usable or "counted 562 times" in usability.reasons[0]


@pytest.mark.parametrize(
    ("work", "engine", "reason"),
    [
        (
            {"observed": {"turns_per_s": 300, "transactions_per_s": 100, "shares": {"log_queue": 0.2}}},
            "mysql",
            "commits",
        ),
        (
            {
                "observed": {"turns_per_s": 300, "transactions_per_s": 100, "shares": {"log_queue": 0.2}},
                "from_waits": True,
            },
            "mysql",
            "commits",
        ),
        (
            {"observed": {"turns_per_s": 300, "transactions_per_s": 100, "shares": {"log_queue": 0.2}}},
            "mariadb",
            "",
        ),
        ({"once": True}, "mysql", "hides where transactions end"),
        ({"once": True}, "mariadb", ""),
        ({}, "mysql", ""),
    ],
)
def test_what_no_model_has_of_mysql_is_refused(work: dict[str, Any], engine: str, reason: str) -> None:
    judgement = judged(FakeReplay(**work), engine=engine)
    assert judgement.usable == (not reason)
    assert reason in " ".join(judgement.reasons)


@pytest.mark.parametrize(("factor", "usable"), [(1e9, False), (1e-4, False), (10.0, True)])
def test_a_count_of_clients_may_differ_by_more(factor: float, usable: bool) -> None:
    judgement = judged(**counted(factor) | {"counters": {}})
    assert judgement.usable == usable
    assert usable or "the client counted" in judgement.reasons[-1]


def cost_of(rate_ratio: float, cpu_ratio: float) -> dict[str, float]:
    """A cost with narrow intervals."""
    return {
        name + end: ratio * factor
        for name, ratio in (("rate_ratio", rate_ratio), ("cpu_ratio", cpu_ratio))
        for end, factor in (("", 1.0), ("_low", 0.99), ("_high", 1.01))
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"duration_s": 1.0, "bursts": [{"start_ns": 0, "end_ns": 4_500_000_000}]},
        {
            "duration_s": 5.0,
            "bursts": [{"start_ns": n * 10**10, "end_ns": n * 10**10 + 10**9} for n in (0, 1)],
        },
        {"transactions": 10**18, "counters": {}, "duration_s": 60.0},
        {"cost": {"rate_ratio": 1.0, "rate_ratio_low": 2.0, "rate_ratio_high": 0.5}},
        {"cost": {"rate_ratio": -1.0, "rate_ratio_low": -1.0, "rate_ratio_high": -1.0}},
        {"machine": MACHINE | {"memory_bytes": 1}},
        {"duration_s": 5.0, "bursts": [{"start_ns": n, "end_ns": n + 10**9} for n in (0, 10**9 - 1)]},
        {"cost": cost_of(100.0, 1.0)},
        {"cost": cost_of(1e-6, 1.0)},
        {"cost": cost_of(1.0, 100.0)},
        {"cost": cost_of(1.0, 1e-9)},
        {"cost": cost_of(1.0, 1.0) | {"cpu_ratio": -5.0}},
    ],
)
def test_fields_that_contradict_each_other_are_not_used(fields: dict[str, Any]) -> None:
    usability = judged(**fields)
    assert not usability.usable
    assert usability.reasons[0].startswith("about.json contradicts itself: ")


def test_a_recorded_run_that_ends_nothing_when_replayed_is_refused() -> None:
    class Stuck(FakeReplay):
        def _outcome(self, *args: Any) -> dict[str, Any]:
            return super()._outcome(*args) | {"transactions": 0, "turns": 0}

    with pytest.raises(TierwiseError, match="ends none of its transactions"):
        of(Stuck()).predict([Scenario(cores=4)])


def test_no_counted_transaction_beside_many_shown_ones() -> None:
    assert not judged(transactions=0, counters={"commits": 0}).usable


@pytest.mark.parametrize("factor", [0.6, 0.97, 1.3, 1.9])
def test_a_load_that_changes_moves_the_count_by_less(factor: float) -> None:
    assert judged(**counted(factor)).usable


def test_a_program_without_database_files_is_a_client() -> None:
    usability = judged(FakeReplay(footprints={}))
    assert not usability.usable
    assert "the recorded program is a client" in usability.reasons[0]


def test_a_job_that_is_done_once_cannot_be_recorded_longer() -> None:
    whole = {"duration_s": 2.0, "bursts": [{"start_ns": 0, "end_ns": 2_000_000_000}]}
    usability = judged(FakeReplay(once=True, error=0.5, transactions=1), **whole)
    assert not usability.usable
    assert all("longer" not in fix for fix in usability.fixes)
    assert usability.fixes == ["record the job again, while nothing else runs"]
