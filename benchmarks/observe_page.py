"""The page of ``benchmarks/observe.py``: its tables and what they say."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tierwise.predict import Estimate, Prediction

_HEAD = """\
# Observations against recordings

An observation samples sessions' waits over SQL; a recording has the kernel's events. This page says how far
their answers are apart. `python benchmarks/observe.py --write docs/evidence/observe.md` writes it.
"""
_HOW = """\
## Method

Each workload runs on PostgreSQL {version} on emulated disks. One run is observed for {seconds:g} s and
recorded for as long, one after the other, in alternating order: the observer's sessions would be part of the
recording. Both then answer the same placements.

- **recording**: the speed-up by `predict` on the recording, replayed.
- **waits**: the speed-up by `predict` on the observation, which knows the cores only.
- **waits, named**: the same, after `observe --on` named the devices that the roles lie on.
- Intervals are in brackets. An answer *agrees* where its interval contains the recording's best guess.

On busy processors an observation counts time without a core as a wait, as the client's, or as processor time.
A best guess is then too high for a log that moves, or an upper bound too low: see the answers marked no.

The building workloads chose the half width for the error of the coarse model (`predict/uncertainty.py`). The
new ones have other devices, numbers of clients and scripts; they ran for the first time after it was frozen.
"""


@dataclass(frozen=True)
class Compared:
    """One placement, answered by a recording and by an observation of the same run."""

    case: str
    place: dict[str, str]
    recorded_per_s: float
    observed_per_s: float
    full: Prediction
    waits: Prediction
    named: Prediction


@dataclass(frozen=True)
class Cost:
    """Cost of an observer: the rate without it over the rate with it, less 1, with its 95 % interval."""

    pairs: int
    value: float
    low: float
    high: float
    core_share: float
    """Processor time of its sessions on the server, as a share of one core."""
    rate_per_s: float


@dataclass(frozen=True)
class Run:
    """How the script was run."""

    seconds: float
    version: str
    """Of the server."""
    load_before: float
    bar: float
    """Most cost of an observer."""


def page(compared: Mapping[str, Sequence[Compared]], cost: Cost | None, run: Run) -> str:
    """The whole page, in Markdown; answers by kind of workload, ``new`` or ``building``."""
    how = _HOW.format(seconds=run.seconds, version=run.version)
    every = [answer for answers in compared.values() for answer in answers]
    parts = [_HEAD, "## Finding\n", *(_finding(name, answers) for name, answers in compared.items())]
    parts += [_conditions(every, run.load_before), how, _runs(every), _table(every), _cost(cost, run.bar)]
    return "\n".join(part for part in parts if part)


def _finding(kind: str, compared: Sequence[Compared]) -> str:
    runs = len({compared.case for compared in compared})
    lines = [f"{runs} {kind} workloads:", ""] if runs else []
    for name, which in (("waits", "waits"), ("waits, with the devices named", "named")):
        pairs = [
            (compared.full.speedup, answer.speedup)
            for compared in compared
            if compared.full.speedup and (answer := getattr(compared, which)).speedup
        ]
        if not pairs:
            continue
        apart = sorted(_apart(full, answer) for full, answer in pairs)
        held = sum(answer.low <= full.value <= answer.high for full, answer in pairs)
        overlapping = sum(answer.low <= full.high and full.low <= answer.high for full, answer in pairs)
        width = statistics.median(answer.high / answer.low for _, answer in pairs)
        lines.append(
            f"- From {name}: best guesses are apart by {_percent(statistics.median(apart))} in the median, "
            f"{_percent(apart[-1])} at most. Of {len(pairs)} intervals, {held} contain the recording's best "
            f"guess, {overlapping} overlap its interval. The median interval spans a factor of {width:.1f}."
        )
    return "\n".join([*lines, ""])


def _conditions(compared: Sequence[Compared], load_before: float) -> str:
    rates = [
        math.exp(abs(math.log(compared.observed_per_s / compared.recorded_per_s))) - 1
        for compared in compared
    ]
    return (
        "## Conditions\n\n"
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Linux {platform.release()}, load average "
        f"{load_before:.1f} before and {os.getloadavg()[0]:.1f} at the end: a load above the number of cores "
        "before the start is that of other programs. The observed and the recorded part of a run differ in "
        f"their rates by up to {_percent(max(rates, default=0.0))}, and so do their answers.\n"
    )


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _runs(compared: Sequence[Compared]) -> str:
    rows = {
        run.case: f"| {run.case} | {run.recorded_per_s:,.0f} | {run.observed_per_s:,.0f} |"
        for run in compared
    }
    head = "## Runs\n\n| run | recorded, transactions/s | observed, transactions/s |\n| --- | ---: | ---: |"
    return "\n".join([head, *rows.values(), ""])


def _table(compared: Sequence[Compared]) -> str:
    head = (
        "## Answers\n\nTimes as fast as the run.\n\n"
        "| run | placement | recording | waits | agrees | waits, named | agrees |\n"
        "| --- | --- | ---: | ---: | :---: | ---: | :---: |"
    )
    return "\n".join([head, *map(_row, compared), ""])


def _row(compared: Compared) -> str:
    place = ", ".join(f"{role} on {device}" for role, device in compared.place.items())
    cells = [compared.case, place, _times(compared.full)]
    for answer in (compared.waits, compared.named):
        cells += [_times(answer), _agrees(compared.full.speedup, answer.speedup)]
    return f"| {' | '.join(cells)} |"


def _times(answer: Prediction) -> str:
    if answer.speedup is None:
        return "no answer"
    return f"{answer.speedup.value:.2f} ({answer.speedup.low:.2f} to {answer.speedup.high:.2f})"


def _agrees(full: Estimate | None, answer: Estimate | None) -> str:
    if full is None or answer is None:
        return ""
    return "yes" if answer.low <= full.value <= answer.high else "no"


def _apart(full: Estimate, answer: Estimate) -> float:
    """Factor between two best guesses, less 1."""
    return math.exp(abs(math.log(answer.value / full.value))) - 1


def _cost(cost: Cost | None, bar: float) -> str:
    if cost is None:
        return ""
    decided = "below" if cost.high < bar else "above" if cost.low > bar else "not decided by this run"
    return (
        "## Cost\n\n"
        f"TPC-B with 8 clients in memory, {cost.rate_per_s:,.0f} transactions a second, {cost.pairs} pairs "
        "of slots with and without an observer, which ran on the same machine. "
        f"It cost {_percent(cost.value, 1)} of the rate (95 %: {_percent(cost.low, 1)} to "
        f"{_percent(cost.high, 1)}): against the bar of {_percent(bar)}, {decided}. Its sessions used "
        f"{_percent(cost.core_share, 2)} of one core of the server, "
        f"{_percent(cost.core_share / (os.cpu_count() or 1), 2)} of all.\n"
    )
