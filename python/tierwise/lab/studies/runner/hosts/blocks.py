"""Which run comes next on which host. Derived from the finished runs alone, so that a study resumes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tierwise.lab.studies.study import RunPlan, Study, plan_runs
from tierwise.results import RunResult


@dataclass
class Blocks:
    """The blocks of a study, numbered as its repeats.

    A block stays on the host that began it. If that host is gone, its finished runs are kept, and a new block
    replaces it, with the next free number and a workload seed of its own. If the host returns first, it
    completes the block itself.

    Attributes:
        study: what to run.
        seed: of the order of runs.
        hosts: number of a block -> its host.
        missing: number of a block that began -> its runs that have no result yet.
    """

    study: Study
    seed: int
    hosts: dict[int, str] = field(default_factory=dict)
    missing: dict[int, list[RunPlan]] = field(default_factory=dict)

    @classmethod
    def after(cls, study: Study, seed: int, results: Iterable[RunResult]) -> Blocks:
        """The blocks after these runs; a run of no named host counts for the machine that ran it."""
        schedule = cls(study, seed)
        finished: dict[int, set[str]] = defaultdict(set)
        for result in results:
            host = result.host.name if result.host else result.machine.host
            schedule.hosts.setdefault(result.repeat, host)
            finished[result.repeat].add(result.run_id)
        for number, run_ids in finished.items():
            schedule.missing[number] = [
                plan for plan in schedule._plans(number) if plan.run_id not in run_ids
            ]
        return schedule

    @property
    def complete(self) -> bool:
        """Whether as many blocks as the study has repeats are complete."""
        return self._complete >= self.study.repeats

    def next_run(self, host: str, present: Collection[str]) -> RunPlan | None:
        """The next run of an idle host, of which the block is from now on; none if others do the rest."""
        wanted = self.study.repeats - self._complete
        still_open = [n for n, runs in self.missing.items() if runs and self.hosts[n] in present]
        chosen = sorted(still_open, key=lambda number: (len(self.missing[number]), number))[:wanted]
        own = [number for number in chosen if self.hosts[number] == host]
        if not own and len(chosen) == wanted:
            return None
        number = own[0] if own else self._begin(host)
        return self.missing[number][0]

    def finish(self, plan: RunPlan) -> None:
        """Take note that a run has a result."""
        self.missing[plan.repeat].remove(plan)

    @property
    def _complete(self) -> int:
        return sum(not runs for runs in self.missing.values())

    def _begin(self, host: str) -> int:
        number = next(number for number in range(len(self.hosts) + 1) if number not in self.hosts)
        self.hosts[number] = host
        self.missing[number] = self._plans(number)
        return number

    def _plans(self, number: int) -> list[RunPlan]:
        return block(self.study, self.seed, number)


def block(study: Study, seed: int, number: int) -> list[RunPlan]:
    """The runs of one block, which may lie beyond the repeats of the study."""
    plans = plan_runs(study.model_copy(update={"repeats": number + 1}), seed)
    return [plan for plan in plans if plan.repeat == number]


def unfinished(study: Study, seed: int, results: Collection[RunResult]) -> bool:
    """Whether a study on many hosts lacks a complete block."""
    return not Blocks.after(study, seed, results).complete
