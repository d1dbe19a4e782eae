"""Results of a device benchmark: each pattern on each device, and the verdict on the flush. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tierwise.lab.analysis.answer_sentences import AnswerSentences
from tierwise.lab.analysis.placement_summary import median_of_known
from tierwise.model import numbers
from tierwise.model.statistics import ENOUGH_REPEATS, Interval, median_interval
from tierwise.results import Latency, PatternResult, RunResult, StrictModel

_KINDS = ("read", "write")
_IN_SENTENCE = {
    "seq1m-q8t1-read": "{mb} MB/s read in sequence",
    "seq1m-q8t1-write": "{mb} MB/s written",
    "rnd4k-q32t1-read": "{rate} random 4 KiB reads a second at depth 32",
    "rnd4k-q1t1-read": "{rate} at depth 1",
}


class PatternRow(StrictModel):
    """One pattern on one placement, over its valid runs; latencies are medians of the runs' percentiles."""

    title: str
    placement: str
    mb_per_s: Interval
    rate: Interval
    p50_us: float | None
    p99_us: float | None


class FlushCheckRow(StrictModel):
    """The flush check of one placement: how many runs came to which verdict, and why the last did."""

    placement: str
    verdicts: dict[str, int]
    reasons: list[str]

    @property
    def text(self) -> str:
        """Verdicts, the commonest first, with counts where they differ."""
        if len(self.verdicts) == 1:
            return next(iter(self.verdicts))
        return ", ".join(f"{verdict} ({count})" for verdict, count in self.verdicts.items())


class DeviceBenchmark(StrictModel):
    """Patterns in the order of the study, placements within each in theirs."""

    rows: list[PatternRow]
    flush: list[FlushCheckRow]


def device_benchmark_of(by_placement: Mapping[str, Sequence[RunResult]], seed: int) -> DeviceBenchmark | None:
    """Sum up runs that measured devices; ``None`` where no run did."""
    valid = {name: [run for run in runs if run.status == "ok"] for name, runs in by_placement.items()}
    runs = [run for group in by_placement.values() for run in group]
    patterns = dict.fromkeys(pattern for run in runs for pattern in run.patterns)
    if not patterns:
        return None
    return DeviceBenchmark(
        rows=[
            _row(pattern, name, benchmark, seed)
            for pattern in patterns
            for name, group in valid.items()
            if (benchmark := [run.patterns[pattern] for run in group if pattern in run.patterns])
        ],
        flush=[_flush(name, group) for name, group in valid.items() if any(run.flush for run in group)],
    )


def benchmark_sentences(benchmark: DeviceBenchmark, runs: Sequence[RunResult]) -> AnswerSentences:
    """The answer as sentences."""
    placements = dict.fromkeys(row.placement for row in benchmark.rows)
    caveats = []
    left_out = sum(run.status != "ok" for run in runs)
    if left_out:
        caveats.append(f"{left_out} of {len(runs)} runs are left out: invalid or failed.")
    if any(row.rate.n < ENOUGH_REPEATS for row in benchmark.rows):
        caveats.append(f"With fewer than {ENOUGH_REPEATS} repeats the intervals are narrower than the truth.")
    if not placements:
        caveats.append("There is no valid run.")
    return AnswerSentences(
        finding=" ".join(_sentence(benchmark, name) for name in placements),
        others="",
        evidence=" ".join(f"A flush on {flush.placement}: {flush.text}." for flush in benchmark.flush),
        advice="",
        caveats=caveats,
    )


def pattern_title(pattern: str) -> str:
    """CrystalDiskMark's name of a line; any other pattern's own name."""
    if pattern not in _IN_SENTENCE and "t1-" not in pattern:
        return pattern
    kind, queue, direction = pattern.split("-")
    return f"{kind.upper()} {queue.upper()} {direction}"


def _sentence(benchmark: DeviceBenchmark, placement: str) -> str:
    rows = {row.title: row for row in benchmark.rows if row.placement == placement}
    parts = [
        text.format(
            mb=numbers.significant_text(row.mb_per_s.estimate),
            rate=numbers.significant_text(row.rate.estimate),
        )
        for pattern, text in _IN_SENTENCE.items()
        if (row := rows.get(pattern_title(pattern))) is not None
    ]
    return f"{placement}: {', '.join(parts)}." if parts else ""


def _row(pattern: str, placement: str, results: Sequence[PatternResult], seed: int) -> PatternRow:
    latencies = [latency for result in results if (latency := _slower(result)) is not None]
    return PatternRow(
        title=pattern_title(pattern),
        placement=placement,
        mb_per_s=median_interval([result.mb_per_s for result in results], seed=seed),
        rate=median_interval([result.rate_per_s for result in results], seed=seed),
        p50_us=median_of_known(latency.p50_us for latency in latencies),
        p99_us=median_of_known(latency.p99_us for latency in latencies),
    )


def _slower(result: PatternResult) -> Latency | None:
    """The latency of the pattern's only kind of request, or of the slower kind."""
    kinds = [latency for kind in _KINDS if (latency := getattr(result, kind)) is not None]
    return max(kinds, key=lambda latency: latency.p50_us, default=None)


def _flush(placement: str, runs: Sequence[RunResult]) -> FlushCheckRow:
    checks = [run.flush for run in runs if run.flush is not None]
    verdicts = Counter[str](check.verdict for check in checks)
    return FlushCheckRow(
        placement=placement, verdicts=dict(verdicts.most_common()), reasons=checks[-1].reasons
    )
