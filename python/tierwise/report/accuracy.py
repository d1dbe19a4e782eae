"""docs/accuracy.md: how far predictions were from measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tierwise.report.conditions import facts_of
from tierwise.results import RunResult
from tierwise.validate import Accuracy, Pair, Reproduction, Summary, by, summary
from tierwise.validate.accuracy import (
    COVERAGE_BAR,
    MEDIAN_BAR,
    NINETIETH_BAR,
    ORDER_BAR,
    WORST_BAR,
    repeatability,
)

COLUMNS = ["", "predictions", "median", "90 %", "worst", "bias", "interval", "covered", "in order"]
_FAR = 1.5
_SHOWN = ("Engine", "Processor", "Memory", "Operating system", "Kernel", "tierwise")
_HOW = f"""\
Written by `tierwise validate`. Each case was recorded once under each of the placements below, and every
other placement predicted from that recording alone. Then each was measured on live emulated disks, all cases
and placements in random order, round after round.

An error is predicted over measured, less 1: of the time of all laps, or of the rate of a mix; measured is
the median of the runs. "Slower" and "faster" are predictions beside what was recorded. "Interval" is how
far above the prediction the 95 % interval reaches, in the median; it knows the errors of all *other*
workloads, never of its own. "Covered" is the share of predictions whose interval holds the measurement.
"In order" is the share of pairs of placements, of those that differ significantly (where there are fewer
than three runs of each: by 10 %), that are predicted in the measured order. Bars: median error
{MEDIAN_BAR:.0%}, 90th percentile {NINETIETH_BAR:.0%}, worst {WORST_BAR:.0%}, covered {COVERAGE_BAR:.0%},
in order {ORDER_BAR:.0%}.
"""


def summary_rows(accuracy: Accuracy) -> list[list[str]]:
    """A row for all, for each way from recording to prediction, each engine and each workload."""
    pairs = accuracy.pairs
    groups = {"all": pairs}
    groups |= {f"recorded on {name}": own for name, own in by(pairs, "recorded").items()}
    groups |= _by_distance(pairs)
    groups |= {f"engine {name}": own for name, own in by(pairs, "engine").items()}
    groups |= {name.replace("_", " "): own for name, own in by(pairs, "workload").items()}
    return [summary_row(name, summary(own)) for name, own in groups.items()]


def _by_distance(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Predictions by how fast they are beside what was recorded."""
    known = [(pair.speedup, pair) for pair in pairs if pair.speedup is not None]
    groups = {
        f"over {_FAR} times slower": [pair for speedup, pair in known if speedup < 1 / _FAR],
        "about as fast": [pair for speedup, pair in known if 1 / _FAR <= speedup <= _FAR],
        f"over {_FAR} times faster": [pair for speedup, pair in known if speedup > _FAR],
    }
    return {name: own for name, own in groups.items() if own}


def summary_row(name: str, found: Summary) -> list[str]:
    """One row, its cells in the order of ``COLUMNS``."""
    refused = f" ({found.refused} refused)" if found.refused else ""
    order = f"{_share(found.order)} of {found.ordered_pairs}" if found.ordered_pairs else "–"
    return [
        name,
        f"{found.pairs}{refused}",
        _share(found.median),
        _share(found.ninetieth),
        _share(found.worst),
        _signed(found.bias),
        "–" if found.width is None else f"+{found.width:.0%}",
        _share(found.coverage),
        order,
    ]


def accuracy_page(accuracy: Accuracy, results: Sequence[RunResult], chart: str | None) -> str:
    """The page as Markdown.

    Args:
        accuracy: what was found.
        results: of the runs, for their conditions.
        chart: file name of the drawing beside the page, if there is one.
    """
    facts = facts_of(results) if results else {}
    parts = [
        "# How accurate predictions are\n",
        _HOW,
        _verdict(summary(accuracy.pairs)),
        f"![Predicted against measured]({chart})\n" if chart else "",
        _repeatability(accuracy),
        "## Errors\n",
        _table(COLUMNS, summary_rows(accuracy)),
        "## Reproduction of the recorded runs\n",
        _table(["case", "recorded on", "error", "error of median latency"], _reproductions(accuracy)),
        "## Every prediction\n",
        _table(["case", "recorded on", "predicted for", "predicted", "measured", "error"], _rows(accuracy)),
        "## Left out\n" if accuracy.left_out else "",
        "\n".join(f"- {what}: {why}" for what, why in accuracy.left_out.items()) + "\n",
        "## Conditions\n",
        "\n".join(f"- {name}: {'; '.join(facts[name])}" for name in _SHOWN if name in facts),
        _others(results),
        f"- Day: {accuracy.day}; {accuracy.runs} runs\n",
    ]
    return "\n".join(part for part in parts if part.strip())


def _verdict(found: Summary) -> str:
    if not found.pairs:
        return "**Nothing was compared yet.**\n"
    bars = "All bars are kept" if found.passed else "Not all bars are kept"
    return (
        f"**{bars}: over {found.pairs} predictions the error is {_share(found.median)} in the median, "
        f"{_share(found.ninetieth)} at the 90th percentile and {_share(found.worst)} at worst; "
        f"{_share(found.coverage)} of the intervals hold the measurement.**\n"
    )


def _others(results: Sequence[RunResult]) -> str:
    """How far other programs disturbed the runs."""
    shares = sorted(
        run.cpu.other_s / (run.elapsed_s * run.machine.cores)
        for run in results
        if run.cpu and run.cpu.other_s is not None and run.elapsed_s
    )
    if not shares:
        return ""
    median, worst = _share(shares[len(shares) // 2]), _share(shares[-1])
    return f"- Processor time of other programs: {median} in the median run, {worst} in the worst"


def _repeatability(accuracy: Accuracy) -> str:
    found = repeatability(accuracy.pairs)
    if found is None:
        return ""
    return (
        f"Two runs of the same case and placement differ by {_share(found[0])} in the median and by "
        f"{_share(found[1])} at the 90th percentile: errors below that cannot be told from chance.\n"
    )


def _reproductions(accuracy: Accuracy) -> Iterator[list[str]]:
    for one in accuracy.reproductions:
        yield [one.case, one.recorded, _reproduced(one), _signed(one.latency_error)]


def _reproduced(one: Reproduction) -> str:
    if one.error is None:
        return f"refused: {one.refused}"
    return _signed(one.error) + (" (refused)" if one.refused else "")


def _rows(accuracy: Accuracy) -> Iterator[list[str]]:
    for pair in accuracy.pairs:
        yield [
            pair.case,
            pair.recorded,
            pair.placement,
            _predicted(pair),
            _measured(pair),
            _signed(pair.error),
        ]


def _predicted(pair: Pair) -> str:
    if pair.predicted is None:
        return "refused" if pair.refused else "no figure"
    estimate = pair.predicted
    return f"{estimate.value:.4g} ({estimate.low:.4g} to {estimate.high:.4g}) {pair.unit}"


def _measured(pair: Pair) -> str:
    found = pair.measurement
    spread = "" if found.low is None else f" ({found.low:.4g} to {found.high:.4g})"
    return f"{found.estimate:.4g}{spread}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}".replace("%", " %")


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1%}".replace("%", " %")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]] | Iterator[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
