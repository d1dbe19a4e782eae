"""Gives each idle host the next run of its block, and keeps every result as it comes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tierwise.lab.studies.runner.hosts.blocks import Blocks
from tierwise.lab.studies.runner.hosts.task import RunTask, result_of, run_here
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.model.errors import TierwiseError
from tierwise.results import RunResult

Present = Mapping[str, str]
"""Host -> address of its worker."""
RETURN_TIMEOUT_S = 60
"""How long a study waits for a host when it has none."""
_POLL_S = 0.2
_MOST_DEATHS = 3
"""Of hosts in a row under one placement, before the study stops."""


class Pending(Protocol):
    """A run under way on a host."""

    def done(self) -> bool:
        """Whether it ended or was lost."""

    def result(self) -> str | None:
        """The record as JSON; ``None`` if the host died.

        Raises:
            TierwiseError: as :func:`~tierwise.lab.studies.runner.hosts.task.run_here`.
        """

    def cancel(self) -> None:
        """Drop it; a run that has begun ends by itself."""


class Hosts(Protocol):
    """Hosts that do runs, one at a time each."""

    def present(self) -> Present:
        """Those that are there now: name -> address, which differs after a restart."""

    def start(self, address: str, work: Callable[[RunTask], str], task: RunTask) -> Pending:
        """Begin a run on one host, and on no other."""


@dataclass(frozen=True)
class _Running:
    address: str
    task: RunTask
    plan: RunPlan
    pending: Pending


def run_blocks(
    study: Study,
    seed: int,
    finished: Sequence[RunResult],
    hosts: Hosts,
    started: Callable[[RunPlan, str], None],
    ended: Callable[[RunPlan, RunResult], None],
) -> None:
    """Run the blocks that a study lacks; each stays on the host that began it.

    Args:
        study: what to run.
        seed: of the order of runs.
        finished: runs from before.
        hosts: where to run.
        started: called with each run that begins, and its host.
        ended: called with each result, which it keeps.

    Raises:
        TierwiseError: a run cannot be prepared, no host is left, or a placement seems to kill its hosts.
            Results before are kept.
    """
    blocks, common = Blocks.after(study, seed, finished), RunTask.of(study, seed)
    running: dict[str, _Running] = {}
    deaths: Counter[str] = Counter()
    last_seen_s = time.monotonic()
    try:
        while not blocks.complete:
            present = hosts.present()
            for host in list(running):
                if _over(running[host], present.get(host)):
                    attempt = running.pop(host)
                    if (result := _result(host, attempt)) is None:
                        _count_death(deaths, attempt.plan)
                        continue
                    ended(attempt.plan, result)
                    blocks.finish(attempt.plan)
                    deaths.pop(attempt.plan.placement.name, None)
            for host in sorted(present.keys() - running.keys()):
                if (plan := blocks.next_run(host, present)) is None:
                    continue
                task = common.for_run(plan.repeat, plan.run_id, host)
                pending = hosts.start(present[host], run_here, task)
                running[host] = _Running(present[host], task, plan, pending)
                started(plan, host)
            last_seen_s = time.monotonic() if present else last_seen_s
            if time.monotonic() - last_seen_s > RETURN_TIMEOUT_S:
                raise TierwiseError(
                    "--hosts: no host is left", "start workers, then the study again: it resumes"
                )
            time.sleep(_POLL_S)
    finally:
        for attempt in running.values():
            attempt.pending.cancel()


def _over(running: _Running, address: str | None) -> bool:
    """Whether a run has ended, or its worker has."""
    return running.pending.done() or running.address != address


def _result(host: str, running: _Running) -> RunResult | None:
    """The result of a run that is over; ``None`` if its host died."""
    if not running.pending.done():
        running.pending.cancel()
        return None
    try:
        text = running.pending.result()
    except TierwiseError as error:
        raise TierwiseError(f"host {host}: {error.message}", error.fix) from error
    return None if text is None else result_of(running.task, text)


def _count_death(deaths: Counter[str], plan: RunPlan) -> None:
    name = plan.placement.name
    deaths[name] += 1
    if deaths[name] >= _MOST_DEATHS:
        raise TierwiseError(
            f"--hosts: {deaths[name]} hosts died in a row under placement {name}",
            "see the logs of their workers, then run the study again: it resumes",
        )
