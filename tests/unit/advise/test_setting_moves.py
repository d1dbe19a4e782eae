"""Settings beside the moves of an advice: listed with what they lose, recommended only if that is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.fake_replay import SERVICE_US, FakeReplay, about
from support.paths import ROOT
from tierwise.advise import Advice, AdviceOptions, Goal, PaymentTerms, advise
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.model.statistics import share_interval
from tierwise.predict import Predictor
from tierwise.predict.model_error import ModelError
from tierwise.predict.replayer import Replayer
from tierwise.report.advice import advice_page, page_decision, survey_advice
from tierwise.report.document import Bullets, Table
from tierwise.report.recording.advice_report import advice_document, further_sentences, setting_blocks
from tierwise.report.recording.decision_words import decision_headline

OFF = "synchronous_commit=off"
TOLD = {"synchronous_commit": "on", "wal_writer_delay": "200ms", "commit_delay": "0"}


def predictor(engine: str = "postgres", settings: dict[str, str] | None = None, **work: Any) -> Predictor:
    recorded = about(engine=engine, settings=TOLD if settings is None else settings)
    return Predictor(recorded, [], Replayer(FakeReplay(**work)), model_error=ModelError())


def advice(may_lose_s: float | None = None, goal: str | None = None, **more: Any) -> Advice:
    wanted = Goal.parse(goal) if goal else None
    return advise(predictor(**more), AdviceOptions(["gp3"], goal=wanted, may_lose_s=may_lose_s))


def test_settings_are_listed_with_gain_price_and_loss_and_none_is_recommended() -> None:
    advised = advice()
    assert [setting.setting for setting in advised.settings] == [OFF, "commit_delay=1000"], (
        "the greatest gain first"
    )
    off, delay = advised.settings
    assert off.cost_per_month == 0 and off.gain_per_s > 0 and off.worthwhile and not delay.worthwhile
    assert (off.loses_s, delay.loses_s) == (pytest.approx(0.6), 0)
    assert off.measured and off.measured.harmed <= off.measured.cuts
    assert 0 < off.measured.low < off.measured.harmed / off.measured.cuts < off.measured.high <= 1
    assert delay.measured is None
    assert advised.decision.setting is None and advised.instead is None
    assert decision_headline(advised).startswith("Move ")


def test_a_setting_that_is_so_is_not_listed() -> None:
    advised = advice(settings={**TOLD, "synchronous_commit": "off"})
    assert [setting.setting for setting in advised.settings] == ["commit_delay=1000"]
    assert advice(engine="duckdb").settings == []


def test_a_setting_is_recommended_where_its_loss_is_allowed_and_it_reaches_as_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert advice(0.5).decision.setting is None, "it may lose 0.6 s"
    monkeypatch.setitem(SERVICE_US, "volume-aws-gp3", 3000.0)
    advised = advice(0.6)
    assert advised.decision.setting == OFF and advised.instead == advised.settings[0]
    assert decision_headline(advised).startswith(
        f"Set {OFF}: "
    ) and "if 600 ms of commits may be lost" in decision_headline(advised)
    assert further_sentences(advised)[0].startswith("What can be bought: Move ")
    said = [text for text in map(str, setting_blocks(advised)) if "give up durability" in text]
    assert said and "none is recommended" not in said[0]


def test_a_move_that_reaches_more_stays_recommended() -> None:
    advised = advice(1.0)
    assert advised.decision.setting is None, "all on the volume is faster than the log for nothing"


def test_a_setting_helps_where_nothing_can_be_bought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVICE_US, "volume-aws-gp3", 9000.0)
    assert advice().decision.stays and advice().decision.setting is None
    advised = advice(1.0)
    assert advised.decision.stays and advised.decision.setting == OFF
    assert further_sentences(advised)[0].startswith("What can be bought: Nothing you can buy here helps")


def test_a_setting_that_reaches_the_goal_is_enough() -> None:
    # 4 clients: 2.6 ms of processor, data and index times a quarter are some 1,300 a second.
    assert advice(1.0, "tps=1000").decision.setting == OFF
    assert advice(1.0, "tps=100000").decision.setting is None


def test_of_settings_that_lose_the_same_time_the_safer_is_recommended() -> None:
    """Both lose the last second; with 0, a crash of the server alone does too."""
    recording = (
        ROOT / "docs/evidence/validation" / "building-5/recordings/write_only-mariadb-4/all-7k2/recorded-1"
    )
    of = Predictor.open(recording, seeds=2)
    advised = advise(of, AdviceOptions(["hdd-7k2"], may_lose_s=1.0))
    first, second = advised.settings[:2]
    assert first.setting.endswith("=0") and second.setting.endswith("=2"), "the greatest gain is listed first"
    assert first.loses_s == second.loses_s == 1
    assert advised.decision.setting == second.setting


def test_no_bound_is_no_permission() -> None:
    recorded = {"journal_mode": "wal", "synchronous": "full"}
    advised = advice(1e6, engine="sqlite", settings=recorded)
    (normal,) = advised.settings
    assert normal.worthwhile and normal.loses_s is None and advised.decision.setting is None


def test_text_and_page_show_the_same_table() -> None:
    of = predictor()
    advice = advise(of, AdviceOptions(["gp3"]))
    tables = [block for block in advice_document(advice) if isinstance(block, Table)]
    (table,) = [table for table in tables if table.title == "Settings instead"]
    assert [row[0].text for row in table.rows] == [OFF, "commit_delay=1000"]
    steps = [item for block in advice_document(advice) if isinstance(block, Bullets) for item in block.items]
    (text,) = [item for item in steps if item.startswith(OFF)]
    assert "ALTER SYSTEM SET synchronous_commit = off" in text and "To go back: " in text
    assert "power cuts lost acknowledged commits" in text and "https://www.postgresql.org/" in text
    made = survey_advice(of, advice, PaymentTerms(), Path("shop"))
    page = advice_page(made)
    assert "<h2>Settings instead</h2>" in page and OFF in page
    allowed = advise(of, AdviceOptions(["gp3"], goal=Goal.parse("tps=1000"), may_lose_s=1.0))
    assert page_decision.page_headline(survey_advice(of, allowed, PaymentTerms(), Path("shop"))).startswith(
        f"Set {OFF}: "
    )
    none = predictor("duckdb")
    plain = advice_page(
        survey_advice(none, advise(none, AdviceOptions(["gp3"])), PaymentTerms(), Path("shop"))
    )
    assert "Settings instead" not in plain


def test_the_option_is_a_time() -> None:
    parsed = AdviceOptions.parse("gp3", None, None, PaymentTerms(), fresh=False, may_lose="500ms")
    assert parsed.may_lose_s == 0.5
    with pytest.raises(TierwiseError, match="--may-lose"):
        AdviceOptions.parse("gp3", None, None, PaymentTerms(), fresh=False, may_lose="a bit")
    done = CliRunner().invoke(app, ["advise", "nowhere", "--devices", "gp3", "--may-lose", "0"])
    assert "--may-lose" in str(done.exception) + done.output


@pytest.mark.parametrize(
    ("events", "trials", "low", "high"),
    # R: binom.test(...)$conf.int
    [(0, 10, 0.0, 0.3084971), (10, 10, 0.6915029, 1.0), (5, 10, 0.1870860, 0.8129140)],
)
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(
    events: int, trials: int, low: float, high: float
) -> None:
    assert share_interval(events, trials) == pytest.approx((low, high), abs=1e-6)


def test_settings_that_are_not_predicted_have_a_bound_with_steps_or_the_reason() -> None:
    advised = advice(settings={**TOLD, "wal_compression": "off", "max_wal_size": "1GB"})
    bounds = {setting.setting: setting for setting in advised.setting_bounds}
    assert list(bounds) == ["wal_compression=on", "max_wal_size=4096MB", "checkpoint_timeout=1200s"]
    assert all(setting.bound and setting.cost_per_month == 0 for setting in bounds.values())
    assert not {move.setting for move in advised.settings} & set(bounds), "no decision may name it"
    text = bullets(advised)
    assert "wal_compression=on: at most " in text and "times as fast, at no further cost: " in text
    assert "ALTER SYSTEM SET max_wal_size = '4096MB'" in text
    assert "To go back: ALTER SYSTEM SET max_wal_size = '1GB'" in text
    assert "up to about 4.00 GiB of log are replayed" in text


def test_the_reason_stands_alone_where_nothing_is_known() -> None:
    advised = advice(engine="mariadb", settings={"innodb_flush_log_at_trx_commit": "0", "sync_binlog": "0"})
    assert [setting.bound is None for setting in advised.setting_bounds] == [False, True]
    text = bullets(advised)
    assert "what innodb_flush_method does is not known from a recording" in text
    assert "innodb_flush_method = " not in text, "no steps to a change of which nothing is known"
    assert advice(engine="duckdb").setting_bounds == []
    unknown = [setting for setting in advised.setting_bounds if setting.bound is None]
    assert bullets(advised.model_copy(update={"setting_bounds": 3 * unknown})).count(unknown[0].why) == 1


def bullets(advised: Advice) -> str:
    blocks = advice_document(advised)
    return "\n".join(str(item) for block in blocks if isinstance(block, Bullets) for item in block.items)


def test_no_commits_are_lost_for_a_goal_that_is_reached_as_recorded() -> None:
    asked = advice(may_lose_s=1.0, goal="tps=1")
    assert asked.decision.stays and asked.instead is None
