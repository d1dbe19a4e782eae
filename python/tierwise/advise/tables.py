"""Which tables and indexes deserve the fast device: the best sets by size, each predicted as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierwise.advise.option import is_told
from tierwise.model.errors import TierwiseError
from tierwise.predict import Estimate, Prediction, Predictor, RecordedRun, Scenario, estimates, resolve
from tierwise.recording.relations import Relations, RelationTraffic
from tierwise.results.measurements import Record

MOST_SETS = 6
"""Sets that are predicted, besides the largest: each is a recording of its own to the simulator."""
ENOUGH = 0.9
"""Share of the highest gain of a set from which on a smaller one is recommended."""
_MOST_COMBINATIONS = 20_000
"""Of partial sets up to which the search is exact; beyond it, they are thinned evenly."""


class TableSet(Record):
    """Some tables and indexes on the new device, and all else where it was recorded."""

    names: list[str]
    """The tables and indexes, those that were waited for longest first."""
    size_bytes: int
    prediction: Prediction

    @property
    def gain(self) -> float:
        """Rate over that of the recorded run, less 1; 0 if it is refused."""
        return self.prediction.speedup.value - 1 if self.prediction.speedup else 0.0


class TableAdvice(Record):
    """The sets of tables and indexes worth a device, smallest first, and the recommended one."""

    run: RecordedRun
    device: str
    capacity_bytes: int | None
    """Space on the device; ``None`` if all may go there."""
    sets: list[TableSet]
    best: int | None
    """Index of the recommended set; ``None``: leave all where they are."""
    total_bytes: int
    """Of all named tables and indexes."""
    gain_kept: Estimate | None
    """Rate of the recommended set over that of the set with the highest rate."""
    warnings: list[str]

    @property
    def recommended(self) -> TableSet | None:
        """The recommended set, if there is one."""
        return None if self.best is None else self.sets[self.best]


@dataclass(frozen=True)
class _Valued:
    row: RelationTraffic
    relief_s: float


def advise_tables(
    predictor: Predictor, found: Relations, device: str, capacity_bytes: int | None = None
) -> TableAdvice:
    """Find the tables and indexes to move to a device.

    A table's value is the time that sessions waited for its files, and the part of their waits for others
    that its requests caused, by their share of the device's time. It chooses sets only: their rates are
    simulated, with the interactions. The best set of each size is exact for these values (a knapsack by
    dominance; Nemhauser and Ullmann, 1969).

    Args:
        predictor: of the recording.
        found: its tables and indexes.
        device: name of the device.
        capacity_bytes: space on it.

    Raises:
        TierwiseError: no table has a name, or none fits.
    """
    found.require_names()
    used = _valued(found)
    valued = [one for one in used if capacity_bytes is None or one.row.size_bytes <= capacity_bytes]
    if not used:
        why = "no table or index was read or written while the database was recorded"
        raise TierwiseError(why, "record under load")
    if not valued:
        raise TierwiseError("no table or index that was used fits the device", "give a larger --capacity")
    fronts = _spread(best_sets([(one.row.size_bytes, one.relief_s) for one in valued], capacity_bytes))
    chosen = [[valued[place].row for place in sorted(places)] for places in fronts]
    scenarios = [Scenario(placement={row.relation.pattern: device for row in rows}) for rows in chosen]
    predictions = predictor.predict(scenarios)
    sets = [
        TableSet(
            names=[row.relation.label for row in rows],
            size_bytes=sum(row.size_bytes for row in rows),
            prediction=prediction,
        )
        for rows, prediction in zip(chosen, predictions, strict=True)
    ]
    sets.sort(key=lambda one: one.size_bytes)
    best = _best(sets, predictor.as_recorded)
    fastest = max(sets, key=lambda one: one.gain)
    return TableAdvice(
        run=predictor.run,
        device=resolve(device).name,
        capacity_bytes=capacity_bytes,
        sets=sets,
        best=best,
        total_bytes=sum(row.size_bytes for row in found.rows),
        gain_kept=None if best is None else _over(sets[best].prediction, fastest.prediction),
        warnings=list(dict.fromkeys(text for one in predictions for text in one.warnings)),
    )


def best_sets(items: Sequence[tuple[int, float]], capacity: int | None) -> list[tuple[int, ...]]:
    """The sets of items that no other set of at most their size surpasses in value, smallest first.

    Args:
        items: size and value of each, both at least 0.
        capacity: largest size of a set; ``None`` for no limit.
    """
    kept: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
    for place, (size, value) in enumerate(items):
        more = [(one[0] + size, one[1] + value, (*one[2], place)) for one in kept]
        both = sorted(
            kept + [one for one in more if capacity is None or one[0] <= capacity],
            key=lambda one: (one[0], -one[1]),
        )
        kept = []
        for one in both:
            if not kept or one[1] > kept[-1][1]:
                kept.append(one)
        kept = kept[:: -(-len(kept) // _MOST_COMBINATIONS)]
    return [places for _, _, places in kept if places]


def _valued(found: Relations) -> list[_Valued]:
    """Tables and indexes that were used, with their value in seconds of sessions' waits."""
    used = [row for row in found.rows if row.files and (row.waited_s > 0 or row.device_s > 0)]
    waited_s = sum(row.waited_s for row in used)
    device_s = sum(row.device_s for row in used) or 1.0
    return [_Valued(row, row.waited_s + row.device_s / device_s * (waited_s - row.waited_s)) for row in used]


def _spread(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """At most ``MOST_SETS`` of the sets and the last, evenly over the front."""
    if len(sets) <= MOST_SETS:
        return list(sets)
    places = {round(number * (len(sets) - 1) / MOST_SETS) for number in range(MOST_SETS + 1)}
    return [sets[place] for place in sorted(places)]


def _best(sets: Sequence[TableSet], recorded: Prediction) -> int | None:
    """The smallest set with enough of the highest gain, if it is told from the recorded run."""
    most = max(one.gain for one in sets)
    for place, one in enumerate(sets):
        if one.gain >= ENOUGH * most and is_told(one.prediction, recorded):
            return place
    return None


def _over(one: Prediction, other: Prediction) -> Estimate | None:
    if one.refused or other.refused:
        return None
    return estimates.ratio(one.seed_rates_per_s, other.seed_rates_per_s)
