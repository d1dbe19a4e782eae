"""Which placement helps which lap, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tierwise.lab.analysis.laps import LapCell, LapRow
from tierwise.model.statistics import FEWEST_REPEATS, Bound, Interval, Verdict
from tierwise.report import numbers
from tierwise.report.moves import join

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
    few = [one for one in cells if one[1].speedup and one[1].speedup.n < FEWEST_REPEATS]
    decided = [one for one in cells if one not in few]
    by_verdict = {verdict: [one for one in decided if one[1].verdict is verdict] for verdict in Verdict}
    parts = [
        _changed(by_verdict[Verdict.FASTER], len(cells), "faster"),
        _changed(by_verdict[Verdict.SLOWER], len(cells), "slower"),
        _listed("no significant difference for", by_verdict[Verdict.NO_DIFFERENCE]),
        _undecided(few),
        _listed("not decided for", by_verdict[Verdict.UNKNOWN]),
    ]
    return f"{placement}: {'; '.join(part for part in parts if part)}."


def _changed(found: Sequence[Said], of: int, how: str) -> str:
    turned = {
        lap.label: cell.speedup if how == "faster" else cell.speedup.inverse
        for lap, cell in found
        if cell.speedup
    }
    ordered = sorted(turned.items(), key=lambda item: -item[1].estimate)
    if not ordered:
        return ""
    if len(ordered) <= _MOST_NAMED:
        return join([f"{name} {_times(ratio)}" for name, ratio in ordered]) + f" times {how}"
    (most, greatest), (least, smallest) = ordered[0], ordered[-1]
    return (
        f"{len(ordered)} of {of} laps {how}, most {most} ({_times(greatest)} times), "
        f"least {least} ({_times(smallest)} times)"
    )


def _times(ratio: Interval) -> str:
    span = numbers.ratio_span(ratio)
    at_least = "at least " if ratio.bound is Bound.AT_LEAST else ""
    return f"{at_least}{numbers.ratio(ratio.estimate)}" + (f" ({span})" if span else "")


def _undecided(found: Sequence[Said]) -> str:
    """Laps with too few repeats for a verdict: their ratios, stated as inconclusive."""
    if len(found) > _MOST_NAMED:
        return f"{len(found)} laps were run too few times to tell"
    ratios = [f"{lap.label} {numbers.ratio(cell.speedup.estimate)}" for lap, cell in found if cell.speedup]
    return f"run too few times to tell (ratios: {', '.join(ratios)})" if ratios else ""


def _listed(what: str, found: Sequence[Said]) -> str:
    return f"{what} {_some([lap.label for lap, _ in found])}" if found else ""


def _some(names: Sequence[str]) -> str:
    return join(names) if len(names) <= _MOST_NAMED else f"{len(names)} laps"


def _firsts(laps: Sequence[LapRow]) -> str:
    """Laps by the placement that saves most per moved role."""
    groups = _by_placement((lap.first, lap) for lap in laps if lap.first)
    listed = "; ".join(f"{placement} for {_some(names)}" for placement, names in groups.items())
    return f"Begin with {listed}." if groups else ""


def _stopped(laps: Sequence[LapRow]) -> str:
    """Laps that a cap stopped: only a lower bound of their time is known."""
    groups = _by_placement((cell.placement, lap) for lap in laps for cell in lap.cells if cell.stopped)
    if not groups:
        return ""
    listed = "; ".join(f"{join(names)} on {placement}" for placement, names in groups.items())
    return f"Stopped at the cap in at least one repeat, so that only a lower bound is known: {listed}."


def _by_placement(found: Iterable[tuple[str, LapRow]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for placement, lap in found:
        groups.setdefault(placement, []).append(lap.label)
    return groups
