"""Books of commits, exact bounds, the frontier in words, durability of a placement: without devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.results_factory import MACHINE, Make, run
from tierwise.advise import durability as advised
from tierwise.lab import studies
from tierwise.lab.analysis.fault_summary import power_cut_sentence
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.engines.commit_load import ITEMS, CommitLedger, FoundCommits, commit_body, item_of_commit
from tierwise.lab.report.study.study_page import study_answer_page
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.lab.studies.runner.fault_beds import CommitBooks, CommitLoad
from tierwise.lab.studies.runner.fault_run import fault_share_of_repeat
from tierwise.lab.studies.study import plan_runs
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.statistics import highest_plausible_share
from tierwise.report.render import to_html_page
from tierwise.results import DeviceInfo, PowerCut, PowerCuts, RunResult, StudyInfo

MS = 1_000_000


def found_with(numbers: list[int]) -> FoundCommits:
    """What one client's commits of these numbers leave behind."""
    last = {item_of_commit(0, number): number for number in sorted(numbers)}
    return FoundCommits(
        [(0, number) for number in numbers], [(i, last.get(i, -1), True) for i in range(ITEMS)]
    )


LOAD = CommitLoad(first=0, begun=[4], acknowledged_ns=[[10 * MS, 20 * MS, 30 * MS]], cut_ns=50 * MS)


@pytest.mark.parametrize(
    ("there", "lost", "oldest_ms", "whole_load"),
    [
        ([0, 1, 2], 0, None, False),
        ([0, 1, 2, 3], 0, None, False),  # begun, not acknowledged: may be there
        ([0, 1], 1, 20, False),
        ([], 3, 40, True),
        ([0, 2], 1, 30, False),
    ],
)
def test_books_find_each_commit_that_is_gone(
    there: list[int], lost: int, oldest_ms: float | None, whole_load: bool
) -> None:
    loss, damage = CommitBooks(1).settle(LOAD, found_with(there))
    assert (loss.commits, loss.oldest_ms, loss.whole_load, damage) == (lost, oldest_ms, whole_load, None)


def test_what_was_acknowledged_after_the_cut_is_not_counted() -> None:
    late = CommitLoad(0, [3], [[10 * MS, 60 * MS]], cut_ns=50 * MS)
    assert CommitBooks(1).settle(late, found_with([0]))[0].commits == 0
    assert late.counted == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (FoundCommits([(0, 9)], found_with([]).items), "nobody inserted"),
        (FoundCommits([(0, 0)], found_with([]).items), "half a transaction"),
        (FoundCommits([], found_with([0]).items), "half a transaction"),
        (FoundCommits([(0, 0), (0, 0)], found_with([0]).items), "twice"),
        (FoundCommits([], found_with([]).items[1:]), "511 items"),
        (FoundCommits([], [(i, -1, i != 7) for i in range(ITEMS)]), "1 items"),
    ],
)
def test_books_find_what_no_whole_transaction_leaves(content: FoundCommits, words: str) -> None:
    assert words in str(CommitBooks(1).settle(LOAD, content)[1])


def test_a_commit_that_survived_one_cut_must_survive_the_next() -> None:
    books = CommitBooks(1)
    books.settle(LOAD, found_with([0, 1, 2]))
    later = CommitLoad(100, [1], [[70 * MS]], cut_ns=90 * MS)
    loss, _ = books.settle(later, found_with([0, 2, 100]))
    assert (loss.commits, loss.whole_load) == (1, True)


def test_a_ledger_keeps_what_another_mapping_wrote(tmp_path: Path) -> None:
    ledger = CommitLedger.make(tmp_path / "commits", 2, None)
    writer = CommitLedger(ledger.path)
    writer.begin(1, 0)
    writer.acknowledge(1, 0)
    writer.begin(1, 1)
    assert (ledger.begun(0), ledger.begun(1)) == (0, 2)
    assert ledger.acknowledged_ns(0) == [] and len(ledger.acknowledged_ns(1)) == 1
    assert commit_body(1, 2) != commit_body(1, 3)


@pytest.mark.parametrize(
    ("events", "trials", "share"),
    # Closed forms for 0 and for all but one; R's binom.test(3, 20, alternative = "less") for the third.
    [(0, 50, 1 - 0.05 ** (1 / 50)), (49, 50, 0.95 ** (1 / 50)), (3, 20, 0.3436642), (5, 5, 1.0)],
)
def test_bounds_are_those_of_clopper_and_pearson(events: int, trials: int, share: float) -> None:
    assert highest_plausible_share(events, trials) == pytest.approx(share, abs=1e-6)


def cut_run(repeat: int, setting: str, durable: bool, rate_per_s: float, cuts: list[PowerCut]) -> RunResult:
    device = DeviceInfo(name="d", kind="ssd", profile="ssd-nvme-consumer", write_cache=True, roles=[Role.LOG])
    power_cuts = PowerCuts(durability=setting, durable=durable, promise="p", clean_start_s=0.1, cuts=cuts)
    made = run(Make(placement="all-ssd", repeat=repeat, order=repeat, setting={"variant": setting}))
    update = {"power_cuts": power_cuts, "rate_per_s": rate_per_s, "devices": [device], "machine": MACHINE}
    return made.model_copy(update={**update, "run_id": f"{setting}/{repeat}"})


def made_cut(**fields: object) -> PowerCut:
    plain = {
        "seed": 1,
        "load_s": 0.5,
        "commits": 9,
        "unflushed_sectors": 1,
        "kept_sectors": 0,
        "torn_writes": 0,
    }
    return PowerCut.model_validate({**plain, "recovery_s": 1.0, **fields})


def test_the_answer_says_what_was_lost_how_surely_and_what_it_gains() -> None:
    whole, lost = [made_cut()] * 10, [made_cut(lost=4, oldest_lost_ms=187.2)] + [made_cut()] * 9
    runs = [cut_run(n, "safe", True, 100 + n, whole) for n in range(5)]
    runs += [cut_run(n, "fast", False, 3.1 * (100 + n), lost) for n in range(5)]
    runs += [cut_run(0, "broken", False, 50, [made_cut(recovery_s=None, damage="does not start")])]
    info = StudyInfo(name="s", question="q", baseline="all-ssd", seed=1, fingerprint="f")
    answer = build_study_answer(runs, info)
    by_setting = {row.durability: power_cut_sentence(row) for row in answer.power_cuts}
    assert (
        "0 of 50 cuts lost an acknowledged commit (so at most 6 in 100, with 95\u00a0% confidence)"
        in by_setting["safe"]
    )
    assert "lost up to 187 ms of commits in 5 of 50 cuts, at 3.1 times" in by_setting["fast"]
    assert "1 of 1 cuts damaged the database, 1 of them beyond starting" in by_setting["broken"]
    frontier = {row.durability: row.on_frontier for row in answer.power_cuts}
    assert frontier == {"safe": True, "fast": True, "broken": False}
    assert answer.headline.startswith("No acknowledged commit was lost in 50 power cuts")
    page = to_html_page(study_answer_page(answer))
    assert "187 ms" in page and "<svg" in page


def test_a_commit_lost_with_a_durable_setting_is_the_headline() -> None:
    runs = [cut_run(0, "safe", True, 100, [made_cut(lost=1, oldest_lost_ms=3.0)])]
    info = StudyInfo(name="s", question="q", baseline="all-ssd", seed=1, fingerprint="f")
    assert build_study_answer(runs, info).headline.startswith("Acknowledged commits were lost")


def test_a_study_of_power_cuts_runs_every_setting_of_its_engine() -> None:
    study, _ = runner.restrict_to_runnable(studies.load_study("power-cut").on_engine("sqlite"))
    plans = plan_runs(study, 1)
    assert len(plans) == study.repeats * 3 * len(study.placements)
    assert sum(fault_share_of_repeat(52, 5, repeat) for repeat in range(5)) == 52


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"durability": ["none"]}, "durability names 'none'"),
    ],
)
def test_settings_that_the_engine_lacks_are_refused(change: dict[str, object], words: str) -> None:
    study = studies.load_study("power-cut").on_engine("sqlite").model_copy(update=change)
    with pytest.raises(TierwiseError, match=words):
        runner.restrict_to_runnable(study)


def test_a_placement_tells_what_its_devices_do_without_power(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = [
        advised.PowerCutCounts(
            engine="postgres",
            profiles=["ssd-nvme-dc"],
            lies=False,
            durability="safe",
            durable=True,
            cuts=50,
            harmed=0,
        )
    ]
    monkeypatch.setattr(advised, "shipped_power_cuts", lambda: advised.PowerCutFindings(cuts=cuts))
    placement = {Role.LOG: "nvme-dc", Role.DATA: "ssd-nvme-consumer", Role.TEMP: "recorded"}
    log, data, temp = advised.device_durability(placement, "postgres")
    assert (log.write_cache, data.write_cache, temp.write_cache) == (False, True, None)
    assert log.shown.startswith("0 of 50 power cuts") and data.shown == temp.shown == advised.NOT_TESTED
    assert "protected" in log.source and log.roles == [Role.LOG]
    assert advised.device_durability(placement, "sqlite")[0].shown == advised.NOT_TESTED
