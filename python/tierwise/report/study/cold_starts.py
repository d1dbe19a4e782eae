"""Cold starts of a comparison's runs: how caches were emptied, and what stayed in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tierwise.results import ColdStart, RunResult

_MOST_NAMED = 3


def cold_starts(run: RunResult) -> Iterator[ColdStart]:
    """Those before the run and before its laps."""
    for found in (run.cold_start, *(lap.cold_start for lap in run.laps)):
        if found is not None:
            yield found


def caches_of(run: RunResult) -> str:
    """State of the caches before the run, and whose were emptied."""
    dropped = {one.dropped for one in cold_starts(run)}
    return ", ".join([run.workload.caches, *(f"{name} dropped" for name in sorted(dropped))])


def warm_caveats(runs: Sequence[RunResult]) -> list[str]:
    """A sentence on the valid runs whose files did not all leave the page cache."""
    valid = [run for run in runs if run.status == "ok"]
    warned = [[text for one in cold_starts(run) for text in one.warnings] for run in valid]
    warm = [texts for texts in warned if texts]
    if not warm:
        return []
    named = list(dict.fromkeys(text for texts in warm for text in texts))
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return [f"{len(warm)} of {len(valid)} runs did not start cold: {'; '.join(named[:_MOST_NAMED])}{more}."]
