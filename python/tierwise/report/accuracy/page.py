"""docs/evidence/accuracy.md: the error of predictions against measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tierwise.model.extras import np
from tierwise.model.units import significant
from tierwise.report.accuracy.how import HOW
from tierwise.validation import Accuracy, Pair, Reproduction, Row, Summary, by, summary

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = [
    "", "cases", "predictions", "median", "90 %", "worst", "bias", "interval", "covered", "score", "CRPS",
    "in order",
]  # fmt: skip
_FAR = 1.5
_ROUNDS = {"building": "Seen while building", "prospective": "First run after the freeze"}


def summary_rows(accuracy: Accuracy, round: str) -> list[list[str]]:
    """Rows of a round: all predictions, each path, distance, engine and family, and the controls."""
    pairs = [pair for pair in accuracy.predictions if pair.round == round]
    own = [pair for pair in accuracy.controls if pair.round == round]
    groups = {"all": pairs} | by(pairs, "path") | _by_distance(pairs)
    groups |= {f"engine {name}": each for name, each in by(pairs, "engine").items()}
    groups |= {f"family {name}": each for name, each in by(pairs, "family").items()}
    rows = [summary_row(name, summary(each, _beside(each, own))) for name, each in groups.items()]
    return [*rows, summary_row("the recorded placement", summary(own))] if own else rows


def summary_row(name: str, found: Summary) -> list[str]:
    """One row, its cells in the order of ``COLUMNS``."""
    refused = f" ({found.refused} refused)" if found.refused else ""
    return [
        name,
        str(found.cases),
        f"{found.pairs}{refused}",
        _share(found.median),
        _share(found.ninetieth),
        _share(found.worst),
        _signed(found.bias),
        "–" if found.width is None else f"+{found.width:.0%}",
        _share(found.coverage),
        "–" if found.score is None else f"{found.score:.2f}",
        "–" if found.crps is None else f"{found.crps:.3f}",
        f"{_share(found.order)} of {found.ordered_pairs}" if found.ordered_pairs else "–",
    ]


def accuracy_page(accuracy: Accuracy, rows: Sequence[Row], chart: str | None) -> str:
    """The page as Markdown.

    Args:
        accuracy: result of the validation.
        rows: rows of the runs, for their conditions.
        chart: file name of the drawing beside the page, if there is one.
    """
    parts = ["# How accurate predictions are\n", HOW]
    parts.append(f"![Predicted against measured]({chart})\n" if chart else "")
    for round, title in _ROUNDS.items():
        parts += _round(accuracy, round, title)
    parts += [
        "## Left out\n" if accuracy.left_out else "",
        "\n".join(f"- {what}: {why}" for what, why in sorted(accuracy.left_out.items())) + "\n",
        f"Laps shorter than declared: {', '.join(accuracy.too_short)}.\n" if accuracy.too_short else "",
        "## Conditions\n",
        "\n".join(f"- {name}: {'; '.join(values)}" for name, values in _conditions(rows).items()),
        "".join(f"- Idle cores stay awake for {one / 1000:g} µs\n" for one in accuracy.idle_poll_ns).rstrip(),
        f"- Day of judging: {accuracy.day}; {accuracy.runs} runs\n",
    ]
    return "\n".join(part for part in parts if part.strip())


def _round(accuracy: Accuracy, round: str, title: str) -> list[str]:
    pairs = [pair for pair in accuracy.pairs if pair.round == round]
    if not pairs:
        return [f"## {title}\n", "No such round has been run yet.\n"]
    own = [one for one in accuracy.reproductions if one.round == round]
    models = ", ".join(dict.fromkeys(pair.model for pair in pairs))
    predictions = [pair for pair in pairs if not pair.control]
    controls = [pair for pair in pairs if pair.control]
    return [
        f"## {title}\n",
        f"Model {models}. {_verdict(summary(predictions, controls))}",
        _spread(accuracy, round),
        table(COLUMNS, summary_rows(accuracy, round)),
        "### Percentiles of latency\n",
        table(["percentile", "predictions", "median error", "bias", "covered"], _percentiles(predictions)),
        "### What predictions are made of\n",
        table(["", "predictions", "median error", "bias"], _parts(predictions)),
        "### Reproduction of the recorded runs\n",
        table(["case", "recorded on", "recordings", "error", "error of median latency"], _reproductions(own)),
        "### Every prediction\n",
        table(
            ["case", "recorded on", "predicted for", "block", "predicted", "measured", "error"], _rows(pairs)
        ),
    ]


def _verdict(found: Summary) -> str:
    if not found.pairs:
        return "**Nothing was compared.**\n"
    bars = "All bars are kept" if found.passed else "Not all bars are kept"
    return (
        f"**{bars}: over {found.pairs} predictions of {found.cases} cases the error is "
        f"{_share(found.median)} in the median, {_share(found.ninetieth)} at the 90th percentile and "
        f"{_share(found.worst)} at worst; {_share(found.coverage)} of the intervals hold the measurement.**\n"
    )


def _spread(accuracy: Accuracy, round: str) -> str:
    found = next((each for name, each in accuracy.spreads.items() if name == round), None)
    if found is None:
        return ""
    raw, adjusted = found["raw"], found["adjusted"]
    kept = "kept" if adjusted.passed else "not kept"
    return (
        f"Runs of one case and placement have a standard deviation of {_share(adjusted.median)} in the "
        f"median over {adjusted.groups} and of {_share(adjusted.ninetieth)} at the 90th percentile, with the "
        f"control workload as control variate ({_share(raw.median)} and {_share(raw.ninetieth)} without): "
        f"the bars for the truth are {kept}.\n"
    )


def _by_distance(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Predictions by their speed-up over the recorded run."""
    known = [(pair.speedup, pair) for pair in pairs if pair.speedup is not None]
    groups = {
        f"over {_FAR} times slower": [pair for speedup, pair in known if speedup < 1 / _FAR],
        "about as fast": [pair for speedup, pair in known if 1 / _FAR <= speedup <= _FAR],
        f"over {_FAR} times faster": [pair for speedup, pair in known if speedup > _FAR],
    }
    return {name: own for name, own in groups.items() if own}


def _beside(pairs: Sequence[Pair], controls: Sequence[Pair]) -> list[Pair]:
    """The recorded placements of these predictions, for comparing their order."""
    recordings = {(pair.case, pair.recorded, pair.block) for pair in pairs}
    return [pair for pair in controls if (pair.case, pair.recorded, pair.block) in recordings]


def _percentiles(pairs: Sequence[Pair]) -> Iterator[list[str]]:
    for name in ("p50", "p95", "p99"):
        figures = [pair.latency[name] for pair in pairs if name in pair.latency]
        if figures:
            errors = np.array([one.predicted.value / one.measured - 1 for one in figures])
            covered = sum(one.covered for one in figures) / len(figures)
            yield [name, str(len(figures)), *_middle(errors), _share(covered)]


def _parts(pairs: Sequence[Pair]) -> Iterator[list[str]]:
    names = dict.fromkeys(name for pair in pairs for name in pair.parts)
    for name in names:
        both = [pair.parts[name] for pair in pairs if name in pair.parts]
        if "share" in name:
            errors = np.array([predicted - measured for predicted, measured in both])
            yield [f"{name} (difference)", str(len(both)), *_middle(errors)]
            continue
        known = [predicted / measured - 1 for predicted, measured in both if measured > 0]
        if known:
            yield [name, str(len(known)), *_middle(np.array(known))]


def _middle(errors: NDArray[np.float64]) -> list[str]:
    return [_share(float(np.median(np.abs(errors)))), _signed(float(np.median(errors)))]


def _reproductions(reproductions: Sequence[Reproduction]) -> Iterator[list[str]]:
    groups: dict[tuple[str, str], list[Reproduction]] = {}
    for one in reproductions:
        groups.setdefault((one.case, one.recorded), []).append(one)
    for (case, recorded), own in groups.items():
        errors = [one.error for one in own if one.error is not None]
        latencies = [one.latency_error for one in own if one.latency_error is not None]
        problems = list(dict.fromkeys(one.problem for one in own if one.problem))
        error = _range(errors) or f"none: {'; '.join(problems)}"
        yield [case, recorded, str(len(own)), error, _range(latencies) or "–"]


def _range(errors: Sequence[float]) -> str:
    if not errors:
        return ""
    if len(errors) == 1:
        return _signed(errors[0])
    return f"{_signed(float(np.median(errors)))} ({_signed(min(errors))} to {_signed(max(errors))})"


def _rows(pairs: Sequence[Pair]) -> Iterator[list[str]]:
    for pair in pairs:
        placement = f"{pair.placement} (control)" if pair.control else pair.placement
        yield [
            pair.case, pair.recorded, placement, str(pair.block),
            _predicted(pair), _measured(pair), _signed(pair.error),
        ]  # fmt: skip


def _predicted(pair: Pair) -> str:
    if pair.predicted is None:
        return "refused" if pair.refused else "no figure"
    estimate = pair.predicted
    ends = f"{significant(estimate.low, 4)} to {significant(estimate.high, 4)}"
    return f"{significant(estimate.value, 4)} ({ends}) {pair.unit}"


def _measured(pair: Pair) -> str:
    found = pair.measurement
    spread = ""
    if found.low is not None and found.high is not None:
        spread = f" ({significant(found.low, 4)} to {significant(found.high, 4)})"
    return f"{significant(found.estimate, 4)}{spread}"


def _conditions(rows: Sequence[Row]) -> Mapping[str, list[str]]:
    """Constant and varying conditions: machine, programs, the measured round."""
    machines = [row.machine for row in rows if row.machine is not None]

    def distinct(values: Sequence[str]) -> list[str]:
        return sorted(dict.fromkeys(value for value in values if value))

    late = [row.late_share for row in rows if row.late_share is not None and row.status == "ok"]
    spoilt = sum(row.status == "spoilt" for row in rows)
    return {
        "Databases": distinct([row.server for row in rows]),
        "Processor": distinct([f"{one.cpu_model}, {one.cores} cores" for one in machines]),
        "Memory": distinct([f"{one.memory_bytes / (1 << 30):.1f} GiB" for one in machines]),
        "Operating system": distinct([f"{one.operating_system}, Linux {one.kernel}" for one in machines]),
        "tierwise": distinct([row.model for row in rows]),
        "Runs repeated because the machine was disturbed": [f"{spoilt} of {len(rows)}"],
        "Deadline overrun of emulated disks, as a share of the run": [
            f"{_share(float(np.median(late)))} in the median, {_share(max(late))} at most" if late else "–"
        ],
    }


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}".replace("%", " %")


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1%}".replace("%", " %")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]] | Iterator[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
