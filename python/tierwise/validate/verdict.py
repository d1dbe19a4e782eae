"""From runs to a verdict: compared twice, so that every interval holds the error of other workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from tierwise.predict import ModelError
from tierwise.results import RunResult
from tierwise.validate.accuracy import Accuracy
from tierwise.validate.learning import learn, learn_without
from tierwise.validate.pairs import Runs, compare, nothing_learnt


def judge(runs: Runs, left_out: Mapping[str, str], say: Callable[[str], None]) -> tuple[Accuracy, ModelError]:
    """Compare what was predicted with what was measured.

    The intervals of a workload's predictions hold the error that was learnt from all other workloads, as
    those of a workload that nobody has tried do. What is returned beside is learnt from all.

    Args:
        runs: recorded and measured.
        left_out: what could not be run, and why.
        say: told of progress.
    """
    day = date.today().isoformat()
    _, bare = compare(runs, nothing_learnt, lambda what: say(f"learning: {what}"))
    known = {case.workload: learn_without(bare, case.workload, day) for case in runs.cases}
    reproductions, pairs = compare(runs, known.__getitem__, lambda what: say(f"judging: {what}"))
    accuracy = Accuracy(
        day=day,
        runs=len(runs.results),
        reproductions=reproductions,
        pairs=pairs,
        left_out=dict(left_out) | _problems(runs.results),
    )
    return accuracy, learn(bare, day)


def _problems(results: Sequence[RunResult]) -> dict[str, str]:
    """Runs that cannot be believed."""
    return {run.run_id: "; ".join([run.status, *run.problems]) for run in results if run.status != "ok"}
