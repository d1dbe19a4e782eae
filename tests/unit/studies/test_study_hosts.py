"""Studies on many hosts: which host runs what, and what a death costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.lap_results import lap_runs
from support.results_factory import ENGINE, INFO, MACHINE, Make, run, study_runs
from support.tiny_study import hosted_study
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.report.study.study_document import host_table, study_answer_document
from tierwise.lab.studies.runner import study_hosts as coordinator
from tierwise.lab.studies.runner.dask_hosts import DaskRun
from tierwise.lab.studies.runner.study_hosts import RunTask, run_blocks, runs_of_block
from tierwise.lab.studies.study import plan_runs
from tierwise.model.errors import TierwiseError
from tierwise.results import RunResult, StudyHost


@dataclass
class Done:
    """A run that ends at the third look, with a made-up result."""

    text: str
    looks: int = 0

    def done(self) -> bool:
        self.looks += 1
        return self.looks > 2

    def result(self) -> str:
        return self.text

    def cancel(self) -> None:
        pass


@dataclass
class Pretended:
    """Hosts that come and go: at each look, ``change`` may alter who is there."""

    there: dict[str, str]
    change: Callable[[Pretended], None] = lambda _: None
    begun: list[tuple[str, str]] = field(default_factory=list)
    altered: dict[str, object] = field(default_factory=dict)
    """Fields of every result with other values."""

    def present(self) -> dict[str, str]:
        self.change(self)
        return dict(self.there)

    def start(self, address: str, work: object, task: RunTask) -> Done:
        self.begun.append((task.host, task.run_id))
        plans = runs_of_block(hosted_study(Path("/"), 1), task.seed, task.repeat)
        plan = next(plan for plan in plans if plan.run_id == task.run_id)
        made = run(Make(repeat=plan.repeat, order=plan.order, engine=plan.engine))
        own = {"run_id": plan.run_id, "placement": plan.placement.name, "host": StudyHost(name=task.host)}
        own |= {"study": "hosted", "study_seed": 1}
        return Done(made.model_copy(update={**own, **self.altered}).model_dump_json())


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "_POLL_S", 0)
    monkeypatch.setattr(coordinator, "RETURN_TIMEOUT_S", 0.05)


def run_on(hosts: Pretended, repeats: int, before: list[RunResult] | None = None) -> list[RunResult]:
    completed = list(before or [])
    run_blocks(
        hosted_study(Path("/"), repeats),
        1,
        list(completed),
        hosts,
        lambda *_: None,
        lambda _, result: completed.append(result),
    )
    return completed


def hosts_of(results: list[RunResult]) -> dict[int, list[str]]:
    groups = defaultdict(list)
    for result in results:
        assert result.host
        groups[result.repeat].append(result.host.name)
    return groups


@pytest.mark.usefixtures("at_once")
def test_a_block_stays_on_one_host_in_the_order_of_the_plan() -> None:
    hosts = Pretended({"a": "1", "b": "2"})
    blocks = hosts_of(run_on(hosts, 5))
    assert sorted(blocks) == [0, 1, 2, 3, 4]
    assert all(len(names) == 2 and len(set(names)) == 1 for names in blocks.values())
    assert {names[0] for names in blocks.values()} == {"a", "b"}
    planned = [plan.run_id for plan in plan_runs(hosted_study(Path("/"), 5), 1)]
    own = [run_id for host, run_id in hosts.begun if host == "a"]
    assert own == [run_id for run_id in planned if run_id in own]


@pytest.mark.usefixtures("at_once")
def test_a_host_that_dies_loses_the_run_in_progress_alone() -> None:
    def change(hosts: Pretended) -> None:
        if len([1 for host, _ in hosts.begun if host == "b"]) == 2:
            hosts.there.pop("b", None)  # in the second run of its block

    hosts = Pretended({"a": "1", "b": "2"}, change)
    completed = run_on(hosts, 3)
    blocks = hosts_of(completed)
    assert sorted(blocks.values()) == [["a"] * 2, ["a"] * 2, ["a"] * 2, ["b"]]
    assert max(blocks) == 3, "a new block replaces the broken one"
    assert len({result.run_id for result in completed}) == 7


@pytest.mark.usefixtures("at_once")
@pytest.mark.skipif(find_spec("distributed") is None, reason="the extra cluster is not installed")
def test_a_result_that_its_worker_died_with_is_not_waited_for() -> None:
    class Future:
        """Was done; its scheduler now waits for the worker, or it is the work that ran out of time."""

        def __init__(self, status: str) -> None:
            self.status = status

        def result(self, timeout: float | None = None) -> str:
            assert timeout, "it would wait without end"
            raise TimeoutError("too late")

    assert DaskRun(Future("pending")).result() is None
    with pytest.raises(TierwiseError, match="too late"):
        DaskRun(Future("error")).result()


def test_a_host_that_returns_completes_its_block() -> None:
    looks = iter(range(1000))

    def change(hosts: Pretended) -> None:
        hosts.there = {} if 5 <= next(looks) < 9 else {"a": str(next(looks) > 8)}

    assert hosts_of(run_on(Pretended({"a": "1"}, change), 2)) == {0: ["a"] * 2, 1: ["a"] * 2}


@pytest.mark.usefixtures("at_once")
def test_a_study_without_a_host_ends_and_resumes() -> None:
    def change(hosts: Pretended) -> None:
        if len(hosts.begun) == 2:
            hosts.there.clear()

    kept: list[RunResult] = []
    with pytest.raises(TierwiseError, match="no host is left"):
        run_blocks(
            hosted_study(Path("/"), 2), 1, [], Pretended({"a": "1"}, change), lambda *_: None,
            lambda _, result: kept.append(result),
        )  # fmt: skip
    assert len(kept) == 1
    assert hosts_of(run_on(Pretended({"a": "9"}), 2, kept)) == {0: ["a"] * 2, 1: ["a"] * 2}
    assert hosts_of(run_on(Pretended({"c": "9"}), 2, kept)) == {0: ["a"], 1: ["c"] * 2, 2: ["c"] * 2}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("field", "value"),
    [("study", "other"), ("study_seed", 2), ("placement", "three"), ("repeat", 10**9), ("rate_per_s", 1.0)],
)
def test_a_result_that_later_readers_would_refuse_is_not_kept(field: str, value: object) -> None:
    kept: list[RunResult] = []
    with pytest.raises(TierwiseError, match="host a"):
        run_blocks(
            hosted_study(Path("/"), 1), 1, [], Pretended({"a": "1"}, altered={field: value}), lambda *_: None,
            lambda _, result: kept.append(result),
        )  # fmt: skip
    assert not kept


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("altered", "named"),
    [
        ({"machine": MACHINE.changed(kernel="7.0")}, "host a: the kernel was 6.18.0 in run"),
        ({"engine": ENGINE.changed(name="sqlite", version="4")}, "host a: engine sqlite was 18.6 in run"),
    ],
)
def test_a_host_that_was_upgraded_does_not_complete_its_block(altered: dict[str, object], named: str) -> None:
    before = run_on(Pretended({"a": "1"}), 1)[:1]
    with pytest.raises(TierwiseError, match=named):
        run_on(Pretended({"a": "1"}, altered=altered), 1, before)
    assert len(run_on(Pretended({"b": "1"}, altered=altered), 1, before)) == 3, "a block of its own"


@pytest.mark.usefixtures("at_once")
def test_a_placement_that_kills_its_hosts_ends_the_study() -> None:
    addresses = iter(range(10_000))

    def change(hosts: Pretended) -> None:
        hosts.there["a"] = str(next(addresses))  # restarted at each look

    hosts = Pretended({}, change)
    with pytest.raises(TierwiseError, match="3 hosts died in a row under placement"):
        run_on(hosts, 1)
    assert len(hosts.begun) == 3


def hosted(effects: dict[str, float], gains: dict[str, float], repeats: int) -> list[RunResult]:
    """Runs of which each repeat is on the next host; a host changes all times, or the gain of log-ssd."""
    names = list(effects)
    hosted = []
    for study_run in study_runs(["all-hdd", "log-ssd"], repeats=repeats, noise=0.02):
        name = names[study_run.repeat % len(names)]
        factor = effects[name] * (gains[name] if study_run.placement == "log-ssd" else 1)
        host = StudyHost(name=name)
        hosted.append(
            study_run.model_copy(update={"elapsed_s": (study_run.elapsed_s or 0) * factor, "host": host})
        )
    return hosted


def test_the_report_has_hosts_as_a_factor() -> None:
    several = hosted({"a": 1.0, "b": 3.0}, {"a": 1.0, "b": 1.0}, 10)
    (after,) = build_study_answer(several, INFO).comparisons
    row = next(row for row in after.rows if not row.is_baseline)
    assert row.speedup and row.speedup.low and row.speedup.high
    assert row.speedup.high / row.speedup.low < 1.1, "the effect of the host cancels"
    assert [host.cost_differs for host in after.hosts] == [True, True]
    assert not any(host.differing for host in after.hosts)
    assert sum("Host" in caveat for caveat in after.words.caveats) == 2


def on_machine(study_run: RunResult, name: str, factor: float) -> RunResult:
    """A run as another machine alone would have made it, its laps too."""
    laps = [lap.model_copy(update={"elapsed_s": lap.elapsed_s * factor}) for lap in study_run.laps]
    machine = study_run.machine.model_copy(update={"host": name})
    times = {"elapsed_s": (study_run.elapsed_s or 0) * factor, "laps": laps}
    return study_run.model_copy(update={"machine": machine, **times})


def test_whole_repeats_merged_from_two_machines_are_compared_within_each() -> None:
    """The slow machine lacks the baseline, whose loss says nothing of the placement."""
    merged = [
        on_machine(each, *(("slow", 10.0) if each.repeat > 5 else ("fast", 1.0)))
        for each in study_runs(["all-hdd", "log-ssd"], repeats=10, noise=0.02)
        if each.repeat <= 5 or each.placement == "log-ssd"
    ]
    alone = [each for each in merged if each.repeat <= 5]
    of_both, of_one = (
        next(row.speedup for row in build_study_answer(runs, INFO).comparisons[0].rows if not row.is_baseline)
        for runs in (merged, alone)
    )
    assert of_both and of_one and of_both.estimate == pytest.approx(of_one.estimate, rel=0.02)


def test_a_lap_is_compared_within_hosts() -> None:
    several = [on_machine(each, *(("b", 3.0) if each.repeat % 2 else ("a", 1.0))) for each in lap_runs()]
    (comparison,) = build_study_answer(several, INFO).comparisons
    ratios = [cell.speedup for lap in comparison.laps for cell in lap.cells if cell.speedup]
    assert ratios
    assert all(ratio.low and ratio.high and ratio.high / ratio.low < 1.5 for ratio in ratios)


def test_the_report_names_the_host_whose_gain_differs() -> None:
    effects, gains = dict.fromkeys("abc", 1.0), {"a": 1.0, "b": 2.0, "c": 1.0}
    answer = build_study_answer(hosted(effects, gains, 12), INFO)
    (comparison,) = answer.comparisons
    assert {host.host: host.differing for host in comparison.hosts} == {"a": [], "b": ["log-ssd"], "c": []}
    assert any("b (" in caveat and "for a further host" in caveat for caveat in comparison.words.caveats)
    assert host_table(comparison.hosts) in study_answer_document(answer)
