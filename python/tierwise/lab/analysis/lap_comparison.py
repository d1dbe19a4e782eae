"""Laps of one comparison: each lap under each placement, beside the baseline, and in sentences. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tierwise.lab.analysis.measures import lap_part, measure_medians
from tierwise.lab.analysis.placement_rows import (
    PlacementRow,
    RepeatTimes,
    Runs,
    first_placement_of,
    host_block_of,
    speedup_of,
)
from tierwise.lab.analysis.placement_summary import mean_wait_shares
from tierwise.model import numbers
from tierwise.model.names import group_by_key, join_words
from tierwise.model.statistics import FEWEST_REPEATS, BoundKind, Interval, RatioVerdict, median_interval
from tierwise.results import LapResult, RunResult, StrictModel, WaitClass

LapKey = tuple[int, str]
"""Stream and name of a lap."""
_MOST_SHOWN = 30


class LapCell(StrictModel):
    """One lap under one placement, over its valid runs. A lap that failed or gave a wrong sum has no time."""

    placement: str
    ok: int
    capped: int
    """Repeats in which it was stopped at the cap; with any, its time is a lower bound."""
    failed: int
    """Repeats in which it failed or its checksum was wrong."""
    problems: list[str]
    elapsed: Interval | None
    speedup: Interval | None
    """Baseline over this placement; ``None`` for the baseline, and if unknown."""
    medians: dict[str, float]
    checksums: list[int]
    """Distinct checksums of its statements."""
    expected: int | None
    resident_share: float | None
    """Least share of the database in the page cache when it began."""
    waits: dict[WaitClass, float]

    @property
    def verdict(self) -> RatioVerdict:
        """Reading of the speed-up."""
        return self.speedup.verdict if self.speedup else RatioVerdict.UNKNOWN

    @property
    def stopped(self) -> bool:
        """Whether its time is a lower bound."""
        return self.elapsed is not None and self.elapsed.bound is not BoundKind.EXACT


class LapRow(StrictModel):
    """One lap under every placement that ran it, in the order of the comparison."""

    name: str
    stream: int
    label: str
    """Its name; with its stream if several streams have a lap of that name."""
    timed: bool
    cold: bool
    cells: list[LapCell]
    first: str | None
    """The placement to adopt first for this lap, by the rule for whole runs."""

    @property
    def slowest_s(self) -> float | None:
        """The greatest time of any placement: 100 % where times are normalised; `None` if one was stopped."""
        times = [cell.elapsed.estimate for cell in self.cells if cell.elapsed]
        return None if self.some_stopped else max(times, default=None)

    @property
    def some_stopped(self) -> bool:
        """Whether it was stopped under any placement."""
        return any(cell.stopped for cell in self.cells)

    def cell(self, placement: str) -> LapCell | None:
        """The lap under one placement."""
        return next((cell for cell in self.cells if cell.placement == placement), None)


def lap_rows(by_placement: Runs, baseline: str, rows: Sequence[PlacementRow], seed: int) -> list[LapRow]:
    """Every lap that a valid run has, stream by stream in the order of the first run."""
    valid = {name: [run for run in runs if run.status == "ok"] for name, runs in by_placement.items()}
    laps_of_runs = [lap for runs in valid.values() for run in runs for lap in run.laps]
    labels = lap_labels(laps_of_runs)
    named = {row.placement: row for row in rows}
    return [_row(key, label, valid, baseline, named, seed) for key, label in labels.items()]


def shown_laps(laps: Sequence[LapRow]) -> list[LapRow]:
    """All laps; if they are too many to show, those of the first stream and group.

    The part of a lap's name before the last dot is its group.
    """
    if len(laps) <= _MOST_SHOWN:
        return list(laps)
    groups = [(lap.stream, lap.name.rpartition(".")[0]) for lap in laps]
    return [lap for lap, group in zip(laps, groups, strict=True) if group == groups[0]][:_MOST_SHOWN]


def laps_named(runs: Sequence[RunResult], key: LapKey) -> list[LapResult]:
    """The laps of that stream and name."""
    return [lap for run in runs for lap in run.laps if (lap.stream, lap.name) == key]


def lap_labels(laps: Sequence[LapResult]) -> dict[LapKey, str]:
    """Each lap's name, stream by stream; with its stream if several streams have a lap of that name."""
    keys = sorted(dict.fromkeys((lap.stream, lap.name) for lap in laps), key=lambda key: key[0])
    names = Counter(name for _, name in keys)
    return {(stream, name): f"{name}, stream {stream}" if names[name] > 1 else name for stream, name in keys}


def _row(
    key: LapKey, label: str, runs: Runs, baseline: str, rows: Mapping[str, PlacementRow], seed: int
) -> LapRow:
    laps = {name: several for name, group in runs.items() if (several := laps_named(group, key))}
    timed = {name: lap_times_of(runs[name], [key]) for name in laps}
    base = timed.get(baseline)
    cells = [
        _cell(name, several, timed[name], None if name == baseline else base, seed)
        for name, several in laps.items()
    ]
    in_lap = [
        rows[cell.placement].model_copy(update={"speedup": cell.speedup})
        for cell in cells
        if cell.placement in rows
    ]
    first = first_placement_of(in_lap, lambda of, over: speedup_of(timed[of], timed[over], seed)).row
    first_lap = next(iter(laps.values()))[0]
    return LapRow(
        **first_lap.model_dump(include=set(LapRow.model_fields)),
        label=label,
        cells=cells,
        first=first.placement if first else None,
    )


def lap_times_of(runs: Sequence[RunResult], keys: Sequence[LapKey]) -> RepeatTimes:
    """Times of some laps where they ended or were stopped at the cap."""
    timed = [
        (lap, host_block_of(run))
        for run in runs
        for key in keys
        for lap in laps_named([run], key)
        if lap.status in ("ok", "capped") and lap.elapsed_s > 0
    ]
    capped = any(lap.status == "capped" for lap, _ in timed)
    return RepeatTimes([lap.elapsed_s for lap, _ in timed], capped, [block for _, block in timed])


def _cell(
    placement: str, laps: Sequence[LapResult], times: RepeatTimes, base: RepeatTimes | None, seed: int
) -> LapCell:
    resident = [lap.resident_share for lap in laps if lap.resident_share is not None]
    return LapCell(
        placement=placement,
        ok=sum(lap.status == "ok" for lap in laps),
        capped=sum(lap.status == "capped" for lap in laps),
        failed=sum(lap.status in ("failed", "wrong") for lap in laps),
        problems=sorted({lap.problem for lap in laps if lap.problem}),
        elapsed=median_interval(times.values_s, seed=seed, capped=times.capped) if times.values_s else None,
        speedup=speedup_of(times, base, seed) if base else None,
        medians=measure_medians([lap_part(lap) for lap in laps if lap.status in ("ok", "capped")]),
        checksums=sorted({lap.checksum for lap in laps if lap.checksum is not None}),
        expected=next((lap.expected_checksum for lap in laps if lap.expected_checksum is not None), None),
        resident_share=min(resident, default=None),
        waits=mean_wait_shares([lap.waits for lap in laps if lap.waits]),
    )


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
    by_verdict = {verdict: [one for one in decided if one[1].verdict is verdict] for verdict in RatioVerdict}
    parts = [
        _changed(by_verdict[RatioVerdict.FASTER], len(cells), "faster"),
        _changed(by_verdict[RatioVerdict.SLOWER], len(cells), "slower"),
        _listed("no significant difference for", by_verdict[RatioVerdict.NO_DIFFERENCE]),
        _undecided(few),
        _listed("not decided for", by_verdict[RatioVerdict.UNKNOWN]),
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
        return join_words([f"{name} {_times(ratio)}" for name, ratio in ordered]) + f" times {how}"
    (most, greatest), (least, smallest) = ordered[0], ordered[-1]
    return (
        f"{len(ordered)} of {of} laps {how}, most {most} ({_times(greatest)} times), "
        f"least {least} ({_times(smallest)} times)"
    )


def _times(ratio: Interval) -> str:
    span = numbers.ratio_span(ratio)
    at_least = "at least " if ratio.bound is BoundKind.AT_LEAST else ""
    return f"{at_least}{numbers.ratio_text(ratio.estimate)}" + (f" ({span})" if span else "")


def _undecided(found: Sequence[Said]) -> str:
    """Laps with too few repeats for a verdict: their ratios, stated as inconclusive."""
    if len(found) > _MOST_NAMED:
        return f"{len(found)} laps were run too few times to tell"
    ratios = [
        f"{lap.label} {numbers.ratio_text(cell.speedup.estimate)}" for lap, cell in found if cell.speedup
    ]
    return f"run too few times to tell (ratios: {', '.join(ratios)})" if ratios else ""


def _listed(what: str, found: Sequence[Said]) -> str:
    return f"{what} {_some([lap.label for lap, _ in found])}" if found else ""


def _some(names: Sequence[str]) -> str:
    return join_words(names) if len(names) <= _MOST_NAMED else f"{len(names)} laps"


def _firsts(laps: Sequence[LapRow]) -> str:
    """Laps by the placement that saves most per moved role."""
    groups = group_by_key((lap.first, lap.label) for lap in laps if lap.first)
    listed = "; ".join(f"{placement} for {_some(names)}" for placement, names in groups.items())
    return f"Begin with {listed}." if groups else ""


def _stopped(laps: Sequence[LapRow]) -> str:
    """Laps that a cap stopped: only a lower bound of their time is known."""
    groups = group_by_key((cell.placement, lap.label) for lap in laps for cell in lap.cells if cell.stopped)
    if not groups:
        return ""
    listed = "; ".join(f"{join_words(names)} on {placement}" for placement, names in groups.items())
    return f"Stopped at the cap in at least one repeat, so that only a lower bound is known: {listed}."
