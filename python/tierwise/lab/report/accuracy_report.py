"""Accuracy of predictions: its chart and its page in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import get_args

from tierwise.lab.validation.measured_rates import BlockEstimate
from tierwise.lab.validation.prediction_accuracy import (
    GOOD,
    LEAST_APART,
    MOST_APART,
    WRONG,
    AccuracyTarget,
    ErrorSummary,
    PredictionAccuracy,
    PredictionPair,
    Verdict,
    accuracy_targets,
    count_verdicts,
    decision_regrets,
    group_pairs_by,
    small_regret_share,
    summarise_pairs,
)
from tierwise.lab.validation.slot_rows import Round, SlotRow
from tierwise.model.extras import alt, np
from tierwise.model.numbers import percent_text
from tierwise.model.units import significant_text
from tierwise.predict import Estimate
from tierwise.predict.answer import MOST_SPAN
from tierwise.report.charts.chart_style import (
    ChartLook,
    chart_of_records,
    colour_legend,
    finish_chart,
    log_scale,
    placement_colours,
    quantitative_axis,
    shape_legend,
)

_HEIGHT_PX = 560
_FIGURES = ("measured", "predicted", "low", "high")
_UNIT = "s (for a job, or for a thousand transactions)"
_HUES = ["place-1", "place-2", "place-3", "place-4", "place-6", "wait-lock", "wait-log_lock", "place-5"]


def accuracy_chart(pairs: Sequence[PredictionPair], look: ChartLook) -> alt.LayerChart:
    """Predicted time for the same work, with its interval, against measured time, with a line at equality."""
    data = [_datum(pair) for pair in pairs if pair.predicted is not None]
    values = [float(one[name]) for one in data for name in _FIGURES]  # type: ignore[arg-type]
    scale, ticks = log_scale(values)
    x = alt.X("measured:Q", scale=scale, axis=quantitative_axis(f"Measured, {_UNIT}", values=ticks))
    y = alt.Y("predicted:Q", scale=scale, axis=quantitative_axis(f"Predicted, {_UNIT}", values=ticks))
    names = {_words(name): _HUES[at % len(_HUES)] for at, name in enumerate(group_pairs_by(pairs, "family"))}
    colour = alt.Color("family:N", scale=placement_colours(names, look), legend=colour_legend(look, 4))
    base = chart_of_records(data).encode(x=x, color=colour)
    low, high = scale["domain"]
    ends = chart_of_records([{"at": low}, {"at": high}])
    line = ends.mark_line(strokeDash=[2, 3], color=look.colour("muted")).encode(
        x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale)
    )
    layers = [
        line,
        base.mark_rule(strokeWidth=2, opacity=0.35).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_point(size=55, opacity=0.9, filled=True).encode(
            y=y, shape=alt.Shape("recorded:N", legend=shape_legend(look))
        ),
    ]
    return finish_chart(layers, look, _HEIGHT_PX, "Predicted against measured")


def _datum(pair: PredictionPair) -> dict[str, object]:
    """Times for the work: of a job, or of a thousand transactions."""
    assert pair.predicted is not None
    rates = {
        "predicted": pair.predicted.value,
        "measured": pair.measured.value,
        "low": pair.predicted.high,
        "high": pair.predicted.low,
    }
    work = 1 if pair.laps else 1000
    return {
        "family": _words(pair.family),
        "recorded": f"recorded on {pair.recorded}",
        **{name: work / value for name, value in rates.items()},
    }


def _words(family: str) -> str:
    return family.replace("_", " ")


HOW = f"""\
Written by `tierwise validate`; [validation.md](validation.md) has the protocol. All placements of a case
are up at once. The client runs against one at a time for some seconds (a slot), in random order within
blocks. A recording is a slot too, with slots that are not recorded before and after it.

- **Measured** is the rate beside the recording, times the ratio of the two placements within the same
  blocks. Its 95 % interval is that of the ratio.
- **Error** is the predicted over the measured rate, less 1: above 0, the prediction is too fast. **Bias**
  is the median error with its sign.
- **Reach**: how far above the prediction the 95 % interval reaches, in the median. It contains the errors
  calibrated from all *other* families of clients, never from its own. **Holds**: share of the predictions
  whose interval contains the measurement. **Score** is the mean interval score (width, and 40 times the
  distance of what lies outside, of the logarithm); lower is better.
- **In order**: share of the pairs of placements predicted from one recording, whose measured rates differ
  by {LEAST_APART:g} to {MOST_APART:g} times, that are predicted in the measured order.
- **Bounds**: how many of the stated upper bounds the measurement exceeds.
- **The recorded placement** is a control: predicted, and compared with the slots beside the recording.
- **Regret**: how much faster the best measured placement is than the advised one, among those that cost no
  more.
- **What is stated**: a figure with its interval; a range alone, where the ends of the interval differ by
  more than a factor of {MOST_SPAN:g}; or that the recording is not usable. A prediction is good if it errs
  by less than {percent_text(GOOD)}, and wrong if it errs by more than {percent_text(WRONG)}.
"""


COLUMNS = [
    "", "cases", "predictions", "median", "90 %", "worst", "bias", "reach", "holds", "score",
    "bounds exceeded", "in order",
]  # fmt: skip
_FAR = 1.5
_WORST = 10
_ROUNDS: dict[Round, str] = {"building": "Seen while building", "prospective": "First run after the freeze"}


def summary_rows(accuracy: PredictionAccuracy, round: str) -> list[list[str]]:
    """Rows of a round: all predictions, each load, path, distance, engine and family, and the controls."""
    pairs = [pair for pair in accuracy.predictions if pair.round == round]
    own = [pair for pair in accuracy.controls if pair.round == round]
    groups = {"all": pairs}
    groups |= {f"load: {name}": each for name, each in group_pairs_by(pairs, "load").items()}
    groups |= group_pairs_by(pairs, "path") | _by_distance(pairs)
    groups |= {f"engine {name}": each for name, each in group_pairs_by(pairs, "engine").items()}
    groups |= {f"family {name}": each for name, each in group_pairs_by(pairs, "family").items()}
    rows = [summary_row(name, summarise_pairs(each, _beside(each, own))) for name, each in groups.items()]
    return [*rows, summary_row("the recorded placement", summarise_pairs(own))] if own else rows


def summary_row(name: str, summary: ErrorSummary) -> list[str]:
    """One row, its cells in the order of ``COLUMNS``."""
    refused = f" ({summary.refused} refused)" if summary.refused else ""
    return [
        name,
        str(summary.cases),
        f"{summary.pairs}{refused}",
        _share(summary.median),
        _share(summary.ninetieth),
        _share(summary.worst),
        _signed(summary.bias),
        "–" if summary.width is None else f"+{summary.width:.0%}".replace("%", " %"),
        _share(summary.coverage),
        "–" if summary.score is None else f"{summary.score:.2f}",
        f"{summary.exceeded} of {summary.bounds}" if summary.bounds else "–",
        f"{_share(summary.order)} of {summary.ordered_pairs}" if summary.ordered_pairs else "–",
    ]


def accuracy_page(accuracy: PredictionAccuracy, rows: Sequence[SlotRow], chart: str | None) -> str:
    """The page as Markdown."""
    parts = ["# How accurate predictions are\n", HOW, _bars(accuracy)]
    parts.append(f"![Predicted against measured]({chart})\n" if chart else "")
    for round, title in _ROUNDS.items():
        parts += _round(accuracy, round, title)
    parts += [
        "## Left out\n" if accuracy.left_out else "",
        "\n".join(f"- {what}: {why}" for what, why in sorted(accuracy.left_out.items())) + "\n",
        "## Conditions\n",
        "\n".join(f"- {name}: {'; '.join(values)}" for name, values in _conditions(rows).items()),
        "".join(
            f"- Idle cores stay awake for {poll_ns / 1000:g} µs\n" for poll_ns in accuracy.idle_poll_ns
        ).rstrip(),
        f"- Day of judging: {accuracy.day}; {accuracy.slots} slots\n",
    ]
    return "\n".join(part for part in parts if part.strip())


def _bars(accuracy: PredictionAccuracy) -> str:
    """Every target with the result of each round, and which results miss it."""
    rounds = {
        title: accuracy_targets(pairs)
        for round, title in _ROUNDS.items()
        if (pairs := [pair for pair in accuracy.pairs if pair.round == round])
    }
    rows = [[row[0].name, _target(row[0]), *map(_result, row)] for row in zip(*rounds.values(), strict=True)]
    return markdown_table(["bar", "target", *(title.lower() for title in rounds)], rows) if rounds else ""


def _target(bar: AccuracyTarget) -> str:
    return f"at least {percent_text(bar.least)}" if bar.most is None else f"at most {percent_text(bar.most)}"


def _result(bar: AccuracyTarget) -> str:
    counted = f" of {bar.count}" if bar.count is not None else ""
    return f"{_share(bar.value)}{counted}{'' if bar.met else ', **missed**'}"


def _round(accuracy: PredictionAccuracy, round: Round, title: str) -> list[str]:
    pairs = [pair for pair in accuracy.pairs if pair.round == round]
    if not pairs:
        return [f"## {title}\n", "No such round has been run yet.\n"]
    models = ", ".join(dict.fromkeys(pair.model for pair in pairs))
    predictions = [pair for pair in pairs if not pair.control]
    controls = [pair for pair in pairs if pair.control]
    known = [pair for pair in predictions if pair.log_error is not None]
    rates = accuracy.rates.get(round, {})
    return [
        f"## {title}\n",
        f"Model {models}. {_errors(summarise_pairs(predictions, controls), summarise_pairs(controls))}",
        _regret(pairs),
        markdown_table(COLUMNS, summary_rows(accuracy, round)),
        "### Percentiles of latency\n",
        markdown_table(
            ["percentile", "predictions", "median error", "bias", "holds"], _percentiles(predictions)
        ),
        "### What is stated, and its error\n",
        markdown_table(["stated", "good", "between", "wrong"], _verdicts(accuracy, pairs, round)),
        f"### The {_WORST} worst\n",
        markdown_table(
            ["case", "recorded on", "predicted for", "predicted", "measured", "error"],
            _rows(sorted(known, key=lambda pair: abs(pair.log_error or 0.0), reverse=True)[:_WORST]),
        ),
        "### Recordings\n",
        markdown_table(
            ["case", "recorded on", "rate", "beside it", "replayed over recorded", "usable"],
            _recordings(accuracy, round),
        ),
        "### What was measured\n",
        _spread(rates),
        markdown_table(
            ["case", "placement", "blocks", "rate a second", "deviation over blocks"], _rates(rates)
        ),
        _agreement(accuracy),
        "### Every prediction\n",
        markdown_table(
            ["case", "recorded on", "predicted for", "predicted", "measured", "error"], _rows(pairs)
        ),
    ]


def _errors(summary: ErrorSummary, control: ErrorSummary) -> str:
    if not summary.pairs:
        return "**Nothing was compared.**\n"
    return (
        f"**Over {summary.pairs} predictions of {summary.cases} cases the error is {_share(summary.median)} "
        f"in the median, {_share(summary.ninetieth)} at the 90th percentile and "
        f"{_share(summary.worst)} at worst; {_share(summary.coverage)} of the intervals hold the "
        f"measurement. The recorded placement errs by {_share(control.median)} in the median and "
        f"{_share(control.worst)} at worst.**\n"
    )


def _regret(pairs: Sequence[PredictionPair]) -> str:
    shares = decision_regrets(pairs)
    if not shares:
        return ""
    return (
        f"Of {len(shares)} decisions, {_share(small_regret_share(pairs))} have "
        f"a regret of at most 5 %; at worst, "
        f"the best placement at its price is {_share(max(shares))} faster than the advised one.\n"
    )


def _by_distance(pairs: Sequence[PredictionPair]) -> dict[str, list[PredictionPair]]:
    """Predictions by their measured ratio, and those from a slow disk to anything faster."""
    groups = {
        f"over {_FAR} times slower": [pair for pair in pairs if pair.ratio.value < 1 / _FAR],
        "about as fast": [pair for pair in pairs if 1 / _FAR <= pair.ratio.value <= _FAR],
        f"over {_FAR} times faster": [pair for pair in pairs if pair.ratio.value > _FAR],
        "from a disk to anything faster": [pair for pair in pairs if pair.from_disk and pair.ratio.value > 1],
    }
    return {name: own for name, own in groups.items() if own}


def _beside(pairs: Sequence[PredictionPair], controls: Sequence[PredictionPair]) -> list[PredictionPair]:
    """The recorded placements of these predictions, for comparing their order."""
    recordings = {pair.key for pair in pairs}
    return [pair for pair in controls if pair.key in recordings]


def _percentiles(pairs: Sequence[PredictionPair]) -> Iterator[list[str]]:
    for name in ("p50", "p95", "p99"):
        figures = [pair.latency[name] for pair in pairs if name in pair.latency]
        if figures:
            errors = np.array([figure.predicted.value / figure.measured - 1 for figure in figures])
            covered = sum(figure.covered for figure in figures) / len(figures)
            middle = _share(float(np.median(np.abs(errors)))), _signed(float(np.median(errors)))
            yield [name, str(len(figures)), *middle, _share(covered)]


def _verdicts(
    accuracy: PredictionAccuracy, pairs: Sequence[PredictionPair], round: str
) -> Iterator[list[str]]:
    counts = count_verdicts(
        [recording for recording in accuracy.recordings if recording.round == round], pairs
    )
    for stated in get_args(Verdict):
        yield [stated, *(str(counts.get((stated, what), 0)) for what in ("good", "between", "wrong"))]


def _recordings(accuracy: PredictionAccuracy, round: str) -> Iterator[list[str]]:
    for recording in accuracy.recordings:
        if recording.round == round:
            reasons = [recording.problem] if recording.problem else recording.reasons
            verdict = "yes" if recording.usable else "; ".join(reasons)
            rates = [_figure(recording.rate_per_s), _figure(recording.beside_per_s)]
            yield [recording.case, recording.recorded, *rates, _signed(recording.error), verdict]


def _spread(rates: Mapping[str, Mapping[str, BlockEstimate]]) -> str:
    spreads = [rate.spread for each in rates.values() for rate in each.values()]
    if not spreads:
        return ""
    return (
        f"The standard deviation over blocks is {_share(median(spreads))} in the median of {len(spreads)} "
        f"placements, {_share(float(np.quantile(spreads, 0.9)))} at the 90th percentile.\n"
    )


def _rates(rates: Mapping[str, Mapping[str, BlockEstimate]]) -> Iterator[list[str]]:
    for case, each in rates.items():
        for placement, rate in each.items():
            yield [case, placement, str(rate.blocks), _with_ends(rate), _share(rate.spread)]


def _agreement(accuracy: PredictionAccuracy) -> str:
    if accuracy.agreement is None:
        return ""
    agree, both = accuracy.agreement
    return f"Two rounds measured {both} ratios of rates; {agree} agree within their intervals.\n"


def _rows(pairs: Sequence[PredictionPair]) -> Iterator[list[str]]:
    for pair in pairs:
        placement = f"{pair.placement} (control)" if pair.control else pair.placement
        predicted = "refused" if pair.refused else "no figure"
        if pair.predicted is not None:
            predicted = _with_ends(pair.predicted)
        figures = [predicted, _with_ends(pair.measured), _signed(pair.error)]
        yield [pair.case, pair.recorded, placement, *figures]


def _with_ends(rate: Estimate | BlockEstimate) -> str:
    return f"{_figure(rate.value)} ({_figure(rate.low)} to {_figure(rate.high)})"


def _figure(value: float | None) -> str:
    return "–" if value is None else significant_text(value)


def _conditions(rows: Sequence[SlotRow]) -> Mapping[str, list[str]]:
    """Constant and varying conditions: machine, programs, what idle servers used."""
    machines = [row.machine for row in rows if row.machine is not None]

    def distinct(values: Sequence[str]) -> list[str]:
        return sorted(dict.fromkeys(value for value in values if value))

    idle = [row.idle_cpu_share for row in rows if row.idle_cpu_share is not None]
    shares = np.quantile(idle, [0.5, 0.99]) if idle else None
    return {
        "Databases": distinct([row.server for row in rows]),
        "Processor": distinct([f"{machine.cpu_model}, {machine.cores} cores" for machine in machines]),
        "Memory": distinct([f"{machine.memory_bytes / (1 << 30):.1f} GiB" for machine in machines]),
        "Operating system": distinct(
            [f"{machine.operating_system}, Linux {machine.kernel}" for machine in machines]
        ),
        "tierwise": distinct([row.model for row in rows]),
        "Use of the processors just before a slot": [
            "–"
            if shares is None
            else f"{_share(shares[0])} in the median, {_share(shares[1])} at the 99th percentile"
        ],
        "Warnings": distinct([problem for row in rows if row.status == "ok" for problem in row.problems])
        or ["none"],
    }


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}".replace("%", " %")


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1%}".replace("%", " %")


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]] | Iterator[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
