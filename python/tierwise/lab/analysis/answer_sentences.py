"""The answer in words. Each sentence is true of the given results or omitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tierwise.lab.analysis.placement_rows import FirstPlacement, Measure, PlacementRow
from tierwise.lab.analysis.placement_summary import Moved, all_moved_roles
from tierwise.model import numbers
from tierwise.model.names import capitalized, join_words
from tierwise.model.placement import ROLE_NAMES, Role
from tierwise.model.statistics import FEWEST_REPEATS, BoundKind, Interval, RatioVerdict
from tierwise.results import DeviceInfo, StrictModel, WaitClass

_KIND_NAMES = {
    "hdd": "a hard disk",
    "ssd": "an SSD",
    "ram": "RAM",
    "array": "an array",
    "volume": "a cloud volume",
    "real": "the device",
}
_SSD_NAMES = {
    "nvme": "an NVMe SSD",
    "optane": "an Optane SSD",
    "pcie": "a PCIe SSD",
    "sata": "a SATA SSD",
    "dram": "a DRAM SSD",
}
"""Word in the name of an SSD's profile -> what it is."""


class PlacementPhraser:
    """Describes placements of one comparison in words."""

    def __init__(self, devices: Iterable[DeviceInfo], all_roles: set[Role]) -> None:
        self._devices = {device.name: device for device in devices}
        self._all = all_roles

    def what(self, moved: Moved) -> str:
        """The files that moved: ``the log``, ``everything``."""
        roles = all_moved_roles(moved)
        if len(roles) > 1 and roles == self._all:
            return "everything"
        return join_words([ROLE_NAMES[role] for role in Role if role in roles])

    def rest(self, moved: Moved, more: set[Role]) -> str:
        """The remaining roles after some roles of ``moved``: ``everything else``, ``the data``."""
        if all_moved_roles(moved) == self._all:
            return "everything else"
        return join_words([ROLE_NAMES[role] for role in Role if role in more])

    def moving(self, placement: str, moved: Moved, targets: bool = True) -> str:
        """``moving the log to an SSD (ssd-nvme-dc)``; the placement's name where nothing moved."""
        if not moved:
            return f"placement {placement}"
        if not targets or (len(moved) > 1 and all_moved_roles(moved) == self._all):
            return f"moving {self.what(moved)}"
        return "moving " + join_words(
            [f"{self.what({device: roles})} to {self._device(device)}" for device, roles in moved.items()]
        )

    def _device(self, name: str) -> str:
        """What the device is, and its profile or directory."""
        device = self._devices.get(name)
        if device is None or device.kind not in _KIND_NAMES:
            return name
        model = device.profile or device.path or ""
        kind, *words = model.split("-")
        ssd = next((_SSD_NAMES[word] for word in words if kind == "ssd" and word in _SSD_NAMES), None)
        return (ssd or _KIND_NAMES[device.kind]) + (f" ({model})" if model else "")


@dataclass(frozen=True)
class AnswerFacts:
    """The subject of the sentences."""

    rows: Sequence[PlacementRow]
    choice: FirstPlacement
    workload: str
    baseline: str
    measure: Measure

    @property
    def first(self) -> PlacementRow | None:
        """The placement to adopt first."""
        return self.choice.row

    @property
    def base(self) -> PlacementRow | None:
        """The baseline, if it has a valid run."""
        return next((row for row in self.rows if row.is_baseline and row.summary.ok), None)

    @property
    def movers(self) -> list[PlacementRow]:
        """Every other placement."""
        return [row for row in self.rows if not row.is_baseline]


_MOST_CLAUSES = 3
_WAITS: list[tuple[str, tuple[WaitClass, ...]]] = [
    ("waiting for the log", ("log_sync", "log_lock")),
    ("reading and writing data", ("data_read", "data_write")),
    ("waiting for locks", ("lock",)),
    ("on CPU, which no device shortens", ("cpu",)),
    ("waiting for the clients", ("client",)),
]
_LOG = _WAITS[0][0]


class AnswerSentences(StrictModel):
    """The answer as sentences; an empty one has nothing true to say."""

    finding: str
    others: str
    evidence: str
    advice: str
    price: str = ""
    """What the advised placement costs, where one that cannot be told from it costs more."""
    caveats: list[str]
    laps: list[str] = []
    """Sentences on which placement helps which lap."""

    @property
    def title(self) -> str:
        """The advice, or without advice the finding."""
        return self.advice or self.finding

    @property
    def headline(self) -> str:
        """All but the caveats."""
        parts = (self.finding, self.others, self.evidence, self.advice, self.price)
        return " ".join(part for part in parts if part)


def write_answer_sentences(facts: AnswerFacts, phraser: PlacementPhraser) -> AnswerSentences:
    """State the result of the rows: a gain, a loss, no difference, or why there is none."""
    if facts.base is None or not facts.movers:
        finding, others, advice = _without_comparison(facts)
    elif facts.first is None:
        finding, others, advice = _without_gain(facts, phraser)
    else:
        finding, others, advice = _with_gain(facts, facts.first, phraser)
    return AnswerSentences(
        finding=_sentence(finding),
        others=_sentence(others),
        evidence=_sentence(_evidence(facts.base)),
        advice=_sentence(advice),
        price=_sentence(_cheapest(facts.first, facts.choice.alike)),
        caveats=[_sentence(caveat) for caveat in _caveats(facts)],
    )


def _with_gain(facts: AnswerFacts, first: PlacementRow, phraser: PlacementPhraser) -> tuple[str, str, str]:
    rest = [row for row in facts.movers if row.placement != first.placement]
    change = _change(first.speedup, facts.measure, facts.workload)
    finding = f"{phraser.moving(first.placement, first.moved)} {change}"
    advice = _advice(facts, first, rest, phraser)
    return finding, _clauses(facts, rest, phraser), advice


def _cheapest(first: PlacementRow | None, alike: Sequence[PlacementRow]) -> str:
    """The price of the advised placement, and of the dearest that cannot be told from it."""
    costs = [(row.cost_per_month, row.placement) for row in alike if row.cost_per_month is not None]
    if first is None or first.cost_per_month is None or not costs:
        return ""
    more, dearest = max(costs)
    if more <= first.cost_per_month:
        return ""
    other = f"{dearest}, which cannot be told from it, {numbers.usd_text(more)}"
    return f"{first.placement} costs {numbers.usd_text(first.cost_per_month)} a month, and {other}"


def _advice(
    facts: AnswerFacts, first: PlacementRow, rest: Sequence[PlacementRow], phraser: PlacementPhraser
) -> str:
    what = phraser.what(first.moved)
    all_of_it = what == "everything"
    if any(all_moved_roles(row.moved) == all_moved_roles(first.moved) for row in rest):
        what = phraser.moving(first.placement, first.moved).removeprefix("moving ")
    if _log_is_untried(facts):
        return f"move {what}, and measure a placement that moves the log: most time goes there"
    steps = [row for row in rest if row.further and row.further.verdict is RatioVerdict.FASTER]
    if steps:
        step = min(steps, key=lambda row: len(all_moved_roles(row.moved)))
        more = all_moved_roles(step.moved) - all_moved_roles(first.moved)
        return f"move {what} first, then {phraser.rest(step.moved, more)}"
    if any(row.further and row.further.verdict is RatioVerdict.SLOWER for row in rest):
        return f"move {what} and leave the rest"
    return f"move {what}" if all_of_it else f"move {what} first"


def _without_gain(facts: AnswerFacts, phraser: PlacementPhraser) -> tuple[str, str, str]:
    judged = [row for row in facts.movers if row.verdict is not RatioVerdict.UNKNOWN]
    ran = [row for row in facts.movers if row.summary.ok]
    if ran and all(_left_open(row) for row in ran):
        return (
            "whole runs cannot be compared, for laps were stopped at the cap",
            _clauses(facts, facts.movers, phraser),
            "look at the single laps, or raise the cap",
        )
    if not judged:
        return _undecided(facts, phraser)
    if len(facts.movers) == 1:
        row = facts.movers[0]
        return (
            f"{phraser.moving(row.placement, row.moved)} {_effect(row, facts.measure, facts.workload)}",
            "",
            _no_gain_advice(facts),
        )
    return (
        f"no placement makes {facts.workload} significantly faster than {facts.baseline}"
        if facts.measure == "elapsed"
        else f"no placement gives {facts.workload} a significantly greater rate than {facts.baseline}",
        _clauses(facts, facts.movers, phraser),
        _no_gain_advice(facts),
    )


def _undecided(facts: AnswerFacts, phraser: PlacementPhraser) -> tuple[str, str, str]:
    """What too few repeats showed; a caveat says that it is not certain."""
    measured = [(row.speedup.estimate, row) for row in facts.movers if row.speedup and row.summary.ok]
    if not measured:
        return "nothing can be decided yet", _clauses(facts, facts.movers, phraser), ""
    ratio, best = max(measured, key=lambda pair: pair[0])
    runs = min(facts.base.summary.ok if facts.base else 0, best.summary.ok)
    change = "times the rate" if facts.measure == "rate" else "times the speed"
    finding = (
        f"{phraser.moving(best.placement, best.moved)} gave {facts.workload} {numbers.ratio_text(ratio)} "
        f"{change} "
        f"of {facts.baseline}, in {numbers.counted_noun(runs, 'run')} of each"
    )
    rest = [row for row in facts.movers if row is not best]
    return finding, _clauses(facts, rest, phraser), ""


def _no_gain_advice(facts: AnswerFacts) -> str:
    if _log_is_untried(facts):
        return "measure a placement that moves the log: most time goes there"
    return "nothing measured here is shown to be worth moving"


def _log_is_untried(facts: AnswerFacts) -> bool:
    """Whether the baseline mostly waits for a log that no placement moves."""
    if facts.base is None or not facts.base.summary.waits or _top_wait(facts.base)[0] != _LOG:
        return False
    return not any(Role.LOG in all_moved_roles(row.moved) for row in facts.movers)


def _without_comparison(facts: AnswerFacts) -> tuple[str, str, str]:
    timed = [row for row in facts.rows if row.summary.ok]
    known = [f"{facts.workload} on {row.placement} {_level(row, facts.measure)}" for row in timed]
    if facts.base is not None:
        return known[0], "only this placement was run, so nothing is compared", ""
    baseline = next((row for row in facts.rows if row.is_baseline), None)
    state = f"has no valid run ({_left_out(baseline)})" if baseline else "has not run"
    return (
        f"no comparison is possible: the baseline {facts.baseline} {state}",
        "; ".join(known[:_MOST_CLAUSES]),
        "mend the cause and run the study again" if baseline else "run the baseline as well",
    )


def _clauses(facts: AnswerFacts, rows: Sequence[PlacementRow], phraser: PlacementPhraser) -> str:
    sentences = [f"{_named(row, facts, phraser)} {_effect(row, facts.measure)}" for row in rows]
    more = len(sentences) - _MOST_CLAUSES
    tail = [f"{more} more in the table"] if more > 0 else []
    return "; ".join(sentences[:_MOST_CLAUSES] + tail)


def _named(row: PlacementRow, facts: AnswerFacts, phraser: PlacementPhraser) -> str:
    """The move without its device, if no other placement moves the same; else with it, or with its name."""
    own = ""
    for targets in (False, True):
        moves = [phraser.moving(mover.placement, mover.moved, targets) for mover in facts.movers]
        own = phraser.moving(row.placement, row.moved, targets)
        if moves.count(own) == 1:
            return own
    return f"{own} ({row.placement})"


def _effect(row: PlacementRow, measure: Measure, what: str = "it") -> str:
    if not row.summary.ok:
        return f"has no valid run ({_left_out(row)})"
    if row.further is not None:
        return _further(row.further, measure)
    if _left_open(row):
        return "was stopped at the cap, which leaves its gain open"
    if row.speedup is None or row.verdict is RatioVerdict.UNKNOWN:
        signed = (
            numbers.with_bound_sign(row.speedup, numbers.ratio_text(row.speedup.estimate))
            if row.speedup
            else ""
        )
        return f"was run too few times to tell{f' (ratio {signed})' if signed else ''}"
    if row.verdict is RatioVerdict.NO_DIFFERENCE:
        ratio = numbers.ratio_text(row.speedup.estimate)
        return f"makes no significant difference (ratio {ratio}, {numbers.interval_text(row.speedup)})"
    return _change(row.speedup, measure, what)


def _left_open(row: PlacementRow) -> bool:
    """Whether the cap, not the number of repeats, leaves a placement undecided."""
    if row.speedup is None:
        return row.summary.capped > 0
    enough = row.speedup.n >= FEWEST_REPEATS
    return enough and row.speedup.bound is not BoundKind.EXACT and row.verdict is RatioVerdict.UNKNOWN


def _further(further: Interval, measure: Measure) -> str:
    if further.verdict is RatioVerdict.FASTER:
        return _change(further, measure, "it a further")
    if further.verdict is RatioVerdict.SLOWER:
        return _change(further, measure, "it", "the first move alone")
    if further.verdict is RatioVerdict.NO_DIFFERENCE:
        return "adds nothing significant"
    return "was run too few times to tell"


def _change(speedup: Interval | None, measure: Measure, what: str, over: str = "") -> str:
    """``makes it 7.9 times faster (95 % interval 7.2–8.6)``, ``gives it 7.9 times the rate (…)``.

    A loss of time is inverted, so that it is above 1 too. ``over`` is named if it is not the baseline.
    """
    if speedup is None:
        return ""
    by_rate = measure == "rate"
    ratio = speedup if by_rate or speedup.estimate >= 1 else speedup.inverse
    times = f"{numbers.ratio_text(ratio.estimate)} times"
    if by_rate:
        verb, change = "gives", f"{times} the rate{f' of {over}' if over else ''}"
    else:
        how = "faster" if speedup.estimate >= 1 else "slower"
        verb, change = "makes", f"{times} {how}{f' than {over}' if over else ''}"
    if ratio.bound is not BoundKind.EXACT:
        return f"{verb} {what} at least {change}: a lap was stopped at the cap"
    return f"{verb} {what} {change} ({numbers.interval_text(ratio)})"


def _level(row: PlacementRow, measure: Measure) -> str:
    value = row.summary.elapsed if measure == "elapsed" else row.summary.rate
    if value is None:
        return "was not timed"
    if measure == "rate":
        return f"does {numbers.significant_text(value.estimate)} transactions a second"
    if value.bound is not BoundKind.EXACT:
        return f"takes at least {numbers.seconds_text(value.estimate)}: a lap was stopped at the cap"
    span = numbers.seconds_span(value)
    conditions = f" (95\u00a0% interval {span})" if span else " in a single run"
    return f"takes {numbers.seconds_text(value.estimate)}{conditions}"


def _top_wait(base: PlacementRow) -> tuple[str, float]:
    waits = base.summary.waits
    shares = {name: sum(waits.get(kind, 0.0) for kind in kinds) for name, kinds in _WAITS}
    return max(shares.items(), key=lambda item: item[1])


def _evidence(base: PlacementRow | None) -> str:
    if base is None or not base.summary.waits:
        return ""
    name, share = _top_wait(base)
    return f"{numbers.percent_text(share)} of session time on {base.placement}, on average, was spent {name}"


def _left_out(row: PlacementRow | None) -> str:
    if row is None:
        return ""
    counts = [(row.summary.failed, "failed"), (row.summary.invalid, "invalid")]
    text = join_words([f"{number} {status}" for number, status in counts if number])
    return f"{text}: {'; '.join(row.summary.problems)}" if row.summary.problems else text


def _caveats(facts: AnswerFacts) -> list[str]:
    left_out = [row for row in facts.rows if row.summary.ok < row.summary.runs]
    caveats = [f"left out of {row.placement}: {_left_out(row)}" for row in left_out]
    judged = [row for row in facts.rows if row.speedup and row.verdict is not RatioVerdict.UNKNOWN]
    weak = min((row.speedup.n for row in judged if row.speedup and row.speedup.weak), default=None)
    if facts.base and facts.movers and not judged:
        caveats.append("too few runs to tell a gain from chance: repeat each placement at least 5 times")
    if weak is not None:
        caveats.append(
            f"with {weak} valid runs on a side the 95\u00a0% intervals are weak: repeat at least 5 times"
        )
    if facts.base and facts.movers and not any(row.moved for row in facts.movers):
        caveats.append("every placement used the same devices, so no difference is to be expected")
    return caveats


def _sentence(text: str) -> str:
    return f"{capitalized(text)}." if text else ""
