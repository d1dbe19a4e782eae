"""The death of one role's device: what counts as which outcome, and the words for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.results_factory import MACHINE, Make, run
from tierwise.advise import durability
from tierwise.advise.durability import DeviceDeathCounts, DeviceDeathFindings
from tierwise.device_models import profiles
from tierwise.lab import studies
from tierwise.lab.analysis.fault_summary import death_sentence
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.engines.engine_documentation import SalvageStep
from tierwise.lab.report.study.study_page import study_answer_page
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.lab.studies.runner.fault_beds import CommitBooks, CommitLoad, StartAttempt, death_record
from tierwise.lab.studies.study import plan_runs
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.report.advice.page_decision import device_risk
from tierwise.report.render import to_html_page
from tierwise.results import DeviceDeath, DeviceDeaths, DeviceInfo, IntegrityCheck, RunResult, StudyInfo

STEP = SalvageStep(step="mend", roles=[Role.LOG], source="the manual")
CHECKED = IntegrityCheck(name="check")
OWED = 9
MS = 1_000_000
LOAD = CommitLoad(first=0, begun=[4], acknowledged_ns=[[10 * MS, 20 * MS, 30 * MS]], cut_ns=50 * MS)


def attempt(step: SalvageStep | None, lost: int | None = None, damage: str | None = None) -> StartAttempt:
    """One that started unless nothing is known of its commits and there is no damage to its content."""
    started = lost is not None or damage == "unreadable"
    return StartAttempt(step, CommitBooks(1), 1.5, started, lost, damage, CHECKED if started else None)


REFUSED = attempt(None, damage="no log")


@pytest.mark.parametrize(
    ("attempts", "start", "outcome", "lost", "recovery_s"),
    [
        ([attempt(None, 0)], "as_is", "whole", 0, 1.5),
        ([attempt(None, 2)], "as_is", "lost", 2, 1.5),
        ([REFUSED, attempt(STEP, 2)], "salvaged", "lost", 2, 3.0),
        ([attempt(None, 0, "torn"), attempt(STEP, 0)], "salvaged", "whole", 0, 3.0),
        ([attempt(None, 3, "torn"), attempt(STEP, 4, "torn")], "as_is", "damaged", 3, 1.5),
        ([REFUSED, attempt(STEP, damage="unreadable")], "salvaged", "damaged", OWED, 3.0),
        ([REFUSED, attempt(STEP, damage="no data")], "never", "gone", OWED, None),
        ([attempt(STEP, 0)], "salvaged", "whole", 0, 1.5),
    ],
)
def test_the_best_attempt_decides(
    attempts: list[StartAttempt], start: str, outcome: str, lost: int, recovery_s: float | None
) -> None:
    death = death_record(1, LOAD, attempts, OWED)
    assert (death.start, death.outcome, death.lost, death.recovery_s) == (start, outcome, lost, recovery_s)
    assert death.refused == (attempts[0].damage if attempts[0].step is None else None)
    assert death.salvage == (None if len(attempts) == 1 and attempts[0].step is None else "mend")
    assert death.needs_new_database == ((start, outcome) != ("as_is", "whole"))
    assert death.ran_on, "the last acknowledgement of this load comes just before its end"


def died(start: str, lost: int = 0, damage: str | None = None) -> DeviceDeath:
    recovery_s = None if start == "never" else 1.0
    died = {"seed": 1, "load_s": 1.0, "commits": 5, "ran_on": False, "acknowledged": OWED}
    more = {"start": start, "lost": lost, "damage": damage, "recovery_s": recovery_s, "salvage": "mend"}
    return DeviceDeath.model_validate(died | more)


def death_run(role: Role, deaths: list[DeviceDeath]) -> RunResult:
    device = DeviceInfo(name="d", kind="ssd", profile="ssd-nvme-dc", roles=[role])
    made = run(Make(placement="all-ssd", setting={"dying": role}))
    device_deaths = DeviceDeaths(role=role, clean_start_s=0.1, deaths=deaths)
    return made.model_copy(update={"device_deaths": device_deaths, "devices": [device], "machine": MACHINE})


RUNS = [
    death_run(Role.LOG, [died("salvaged", 4), died("salvaged", 0, "torn"), died("never", OWED, "no start")]),
    death_run(Role.TEMP, [died("as_is")] * 3),
    death_run(Role.DATA, [died("never", OWED, "no start")] * 3),
]


def test_the_answer_says_how_each_role_starts_and_what_it_lost() -> None:
    info = StudyInfo(name="s", question="q", baseline="all-ssd", seed=1, fingerprint="f")
    answer = build_study_answer(RUNS, info)
    rows = {row.role: row for row in answer.device_deaths}
    log = rows[Role.LOG]
    assert (log.deaths, log.as_is, log.salvaged, log.never, log.lost, log.damaged) == (3, 0, 2, 1, 1, 1)
    assert (log.most_lost, log.owed) == (4, OWED), "of a death after which the engine started"
    sentence = death_sentence(log)
    assert "starts only after mend in 2 of 3, does not start again in 1 of 3" in sentence
    assert "1 of 3 deaths left a damaged database; 1 of 3 deaths lost acknowledged commits" in sentence
    assert "starts as it is; 0 of 3 deaths lost an acknowledged commit" in death_sentence(rows[Role.TEMP])
    assert "restore a backup" in death_sentence(rows[Role.DATA])
    assert "the death of temp takes no commit" in answer.headline
    assert "the death of data or log needs a backup" in answer.headline
    page = to_html_page(study_answer_page(answer))
    assert "starts only after mend" in page and "What was done, and how" in page


def test_advice_says_what_the_death_of_each_role_did(monkeypatch: pytest.MonkeyPatch) -> None:
    log = DeviceDeathCounts(
        engine="postgres",
        role=Role.LOG,
        deaths=3,
        as_is=0,
        salvaged=3,
        never=0,
        lost=3,
        damaged=0,
        steps=["mend"],
    )
    monkeypatch.setattr(durability, "shipped_device_deaths", lambda: DeviceDeathFindings(deaths=[log]))
    death = device_risk("nvme-dc", "postgres", [Role.LOG, Role.DATA]).death
    assert death.startswith("one drive: its death takes all its files. Log: starts only after mend;")
    assert "3 of 3 deaths lost acknowledged commits. Data: not tested" in death
    mirror = device_risk("array-raid1-2x-ssd-nvme-dc", "postgres", [Role.LOG]).death
    assert mirror == "survives the death of one member (RAID 1)"


def test_a_study_of_deaths_runs_every_role_of_its_engine() -> None:
    study, _ = runner.restrict_to_runnable(studies.load_study("device-death").on_engine("rocksdb"))
    assert [plan.setting for plan in plan_runs(study, 1)].count({"dying": "log"}) == study.repeats
    assert {plan.setting["dying"] for plan in plan_runs(study, 1)} == {"data", "log", "system"}
    placement = study.placements["apart"]
    assert len({placement.device_of(Role(role)) for role in ("data", "log", "system")}) == 3
    few = studies.load_study("device-death").on_engine("rocksdb").model_copy(update={"dying": ["temp"]})
    with pytest.raises(TierwiseError, match="dying names 'temp'"):
        runner.restrict_to_runnable(few)


def test_a_member_fails_only_in_an_array_with_copies() -> None:
    mirror = profiles.array_with_failed_member(profiles.load_profile("array-raid1-2x-ssd-nvme-dc"))
    assert mirror.fields["failed_members"] == 1 and mirror.name.endswith("-one-failed")
    for name in ("ssd-nvme-dc", "array-raid0-2x-hdd-7k2-sata-2009"):
        with pytest.raises(TierwiseError):
            profiles.array_with_failed_member(profiles.load_profile(name))


def test_a_member_fails_in_an_array_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('like = "array-raid1-2x-ssd-nvme-dc"\nsummary = "my \\"fine\\" mirror"\n', "utf-8")
    failed = profiles.array_with_failed_member(profiles.load_profile(str(file)))
    assert failed.fields["failed_members"] == 1
    assert failed.summary == 'my "fine" mirror, one failed'
