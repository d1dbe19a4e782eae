"""Sentences on which placement helps which lap, as far as the intervals prove it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tierwise.model.statistics import FEWEST_REPEATS, Bound, Interval, Verdict
from tierwise.report import numbers
from tierwise.report.study.laps import LapCell, LapRow
from tierwise.report.study.moves import join

_MOST_NAMED = 4
Said = tuple[LapRow, LapCell]


def lap_sentences(laps: Sequence[LapRow], placements: Sequence[str], baseline: str) -> list[str]:
    """One sentence per placement, then one on the first placement to adopt for each lap."""
    others = [name for name in placements if name != baseline]
    said = [_of_placement(name, laps, baseline) for name in others]
    firsts = _firsts(laps) if len(others) > 1 else ""
    return [sentence for sentence in [*said, firsts, _stopped(laps)] if sentence]


def _of_placement(placement: str, laps: Sequence[LapRow], baseline: str) -> str:
    cells = [(lap, cell) for lap in laps if (cell := lap.cell(placement)) and lap.cell(baseline)]
    if not cells:
        return ""
    by_verdict = {verdict: [one for one in cells if one[1].verdict is verdict] for verdict in Verdict}
    open_ones = by_verdict[Verdict.UNKNOWN]
    few = [one for one in open_ones if one[1].speedup and one[1].speedup.n < FEWEST_REPEATS]
    rest = [one for one in open_ones if one not in few]
    parts = [
        _changed(by_verdict[Verdict.FASTER], len(cells), "faster", lambda ratio: ratio),
        _changed(by_verdict[Verdict.SLOWER], len(cells), "slower", lambda ratio: ratio.inverse),
        _listed("no significant difference for", by_verdict[Verdict.NO_DIFFERENCE]),
        _undecided(few),
        _listed("not decided for", rest),
    ]
    return f"{placement}: {'; '.join(part for part in parts if part)}."


def _changed(found: Sequence[Said], of: int, how: str, turn: Callable[[Interval], Interval]) -> str:
    ratios = {lap.label: turn(cell.speedup) for lap, cell in found if cell.speedup}
    ordered = dict(sorted(ratios.items(), key=lambda item: -item[1].estimate))
    if not ordered:
        return ""
    if len(ordered) <= _MOST_NAMED:
        return join([f"{name} {_times(ratio)}" for name, ratio in ordered.items()]) + f" times {how}"
    most, least = next(iter(ordered)), next(reversed(ordered))
    return (
        f"{len(ordered)} of {of} laps {how}, most {most} ({_times(ordered[most])} times), "
        f"least {least} ({_times(ordered[least])} times)"
    )


def _times(ratio: Interval) -> str:
    span = numbers.ratio_span(ratio)
    at_least = "at least " if ratio.bound is Bound.AT_LEAST else ""
    return f"{at_least}{numbers.ratio(ratio.estimate)}" + (f" ({span})" if span else "")


def _undecided(found: Sequence[Said]) -> str:
    """Laps with too few repeats for a verdict: their ratios, stated as inconclusive."""
    if not found:
        return ""
    if len(found) > _MOST_NAMED:
        return f"{len(found)} laps were run too few times to tell"
    ratios = [f"{lap.label} {numbers.ratio(cell.speedup.estimate)}" for lap, cell in found if cell.speedup]
    return f"run too few times to tell (ratios: {', '.join(ratios)})"


def _listed(what: str, found: Sequence[Said]) -> str:
    if not found:
        return ""
    if len(found) > _MOST_NAMED:
        return f"{what} {len(found)} laps"
    return f"{what} {join([lap.label for lap, _ in found])}"


def _firsts(laps: Sequence[LapRow]) -> str:
    """Laps by the placement that saves most per moved role."""
    groups: dict[str, list[str]] = {}
    for lap in laps:
        if lap.first:
            groups.setdefault(lap.first, []).append(lap.label)
    if not groups:
        return ""
    return f"Begin with {_by_placement(groups)}."


def _by_placement(groups: Mapping[str, Sequence[str]]) -> str:
    def some(names: Sequence[str]) -> str:
        return join(names) if len(names) <= _MOST_NAMED else f"{len(names)} laps"

    return "; ".join(f"{placement} for {some(names)}" for placement, names in groups.items())


def _stopped(laps: Sequence[LapRow]) -> str:
    """Laps that a cap stopped: only a lower bound of their time is known."""
    groups: dict[str, list[str]] = {}
    for lap in laps:
        for cell in lap.cells:
            if cell.stopped:
                groups.setdefault(cell.placement, []).append(lap.label)
    if not groups:
        return ""
    listed = "; ".join(f"{join(names)} on {placement}" for placement, names in groups.items())
    return f"Stopped at the cap in at least one repeat, so that only a lower bound is known: {listed}."
