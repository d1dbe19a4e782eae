"""Two sets of results compared: matching, ratios, verdicts, and every format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from support.lap_results import LAPS_S, lap_runs
from support.results_factory import INFO, study_runs
from tierwise.lab.analysis.results_comparison import ResultsComparison, ResultsRow, compare_results
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.cli.compare import compare, comparison_text
from tierwise.lab.cli.report import RESULTS_FILE
from tierwise.model import statistics
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.statistics import BoundKind
from tierwise.results import PatternResult, PowerCuts, RunResult
from tierwise.results.result_files import append_record

NAMES = ("before", "after")
SLOW_WRITE = {name: laps | {"write": 2 * laps["write"]} for name, laps in LAPS_S.items()}


@pytest.fixture(scope="module", autouse=True)
def few_resamples() -> Iterator[None]:
    """Enough for what is told apart here, and quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "RESAMPLES", 1_000)
        yield


@pytest.fixture(scope="module")
def comparison() -> ResultsComparison:
    return compare_results(lap_runs(), lap_runs(SLOW_WRITE), NAMES)


def row(comparison: ResultsComparison, pair: str, name: str, what: str) -> ResultsRow:
    (chosen,) = (p for p in comparison.pairs if p.label == pair)
    (here,) = (r for r in chosen.rows if (r.name, r.what) == (name, what))
    return here


def on_engine(runs: list[RunResult], engine: str) -> list[RunResult]:
    return [run.model_copy(update={"engine": run.engine.model_copy(update={"name": engine})}) for run in runs]


def test_laps_that_changed_are_told_from_those_that_did_not(comparison: ResultsComparison) -> None:
    assert [pair.label for pair in comparison.pairs] == sorted(LAPS_S)
    write = row(comparison, "log-ssd", "write", "elapsed")
    assert write.ratio is not None and write.ratio.estimate == pytest.approx(2.0, rel=0.05)
    assert write.verdict == "B slower"
    assert row(comparison, "log-ssd", "update", "elapsed").verdict == "no significant difference"
    assert "log-ssd: B is 1.45 times slower" in comparison.headline


def test_counters_and_roles_have_ratios_too(comparison: ResultsComparison) -> None:
    assert row(comparison, "all-hdd", "log", "bytes written").verdict == "no significant difference"
    assert row(comparison, "all-hdd", "write", "cpu").verdict == "B more"
    assert not [temp_row for temp_row in comparison.pairs[0].of("role") if temp_row.name == "temp"], (
        "no I/O, no row"
    )


def test_two_engines_are_matched_across() -> None:
    both = compare_results(on_engine(lap_runs(), "sqlite"), on_engine(lap_runs(), "postgres"), NAMES)
    assert both.pairs[0].label == "all-hdd"
    several = [*lap_runs(), *on_engine(lap_runs(), "sqlite")]
    assert compare_results(several, several, NAMES).pairs[0].label == "postgres, all-hdd"
    (engine,) = (difference for difference in both.differences if difference.what == "Engine")
    assert (engine.a, engine.b) == (["sqlite 18.6"], ["postgres 18.6"])


def test_single_placements_are_matched_across() -> None:
    disk = {"all-hdd": LAPS_S["all-hdd"]}
    flash = {"all-ssd": LAPS_S["all-ssd"]}
    both = compare_results(lap_runs(disk), lap_runs(flash), NAMES)
    assert [pair.label for pair in both.pairs] == ["all-hdd → all-ssd"]
    assert "times faster" in both.headline


def of_work(run: RunResult, **change: Any) -> RunResult:
    return run.model_copy(update={"workload": run.workload.model_copy(update=change)})


def test_a_workload_without_a_digest_is_known_by_its_name() -> None:
    edited = [of_work(run, digest="edited") for run in lap_runs()]
    assert "other work" not in compare_results(lap_runs(), edited, NAMES).headline


def test_a_workload_is_the_same_wherever_its_folder_was() -> None:
    runs = [of_work(run, name="my_load", digest="first") for run in lap_runs()]
    moved = [of_work(run, name="/home/me/loads/my_load") for run in runs]
    both = compare_results(runs, moved, NAMES)
    assert "other work" not in both.headline and not both.differences
    assert "/home" not in build_study_answer(moved, INFO).headline


@pytest.mark.parametrize("change", [{"scale": 7.0}, {"name": "order_entry"}, {"digest": "edited"}])
def test_times_of_other_work_are_not_compared(change: dict[str, Any]) -> None:
    runs = [of_work(run, digest="first") for run in lap_runs()]
    other = [of_work(run, **change) for run in runs]
    both = compare_results(runs, other, NAMES)
    assert "all-hdd: whole runs cannot be compared, since they did other work (" in both.headline
    assert "times" not in both.headline
    rows = [row for pair in both.pairs for row in pair.rows]
    assert not [row for row in rows if row.what in ("elapsed", "rate") and row.verdict]
    assert not [row for row in rows if row.level in ("lap", "role") and row.ratio], "nor are totals"


@pytest.mark.parametrize("fixed", ["transactions", "seconds"])
def test_a_mix_is_compared_at_any_scale_by_its_rate_where_the_time_is_fixed(fixed: str) -> None:
    runs = study_runs()
    larger = [of_work(run, scale=7.0) for run in runs]
    if fixed == "seconds":
        runs = [run.model_copy(update={"elapsed_s": 60.0, "transactions": 100 + run.order}) for run in runs]
    both = compare_results(runs, larger, NAMES)
    assert "other work" not in both.headline
    by_time = row(both, "all-hdd", "", "elapsed"), row(both, "all-hdd", "", "elapsed without log wait")
    assert [bool(figure.verdict) for figure in by_time] == [fixed == "transactions"] * 2
    assert row(both, "all-hdd", "", "rate").verdict
    totals = [row(both, "all-hdd", "log", what).ratio for what in ("bytes written", "flushes", "busy")]
    assert [ratio is not None for ratio in totals] == [fixed == "transactions"] * 3
    assert row(both, "all-hdd", "", "p99 latency").ratio and row(both, "all-hdd", "", "log wait share").ratio
    assert "Totals of unequal work" in comparison_text(both, "md")


def test_pairs_are_in_order_and_transactions_of_a_fixed_time_are_no_condition() -> None:
    runs = [
        run.model_copy(
            update={"transactions": 100 + run.order + 1000 * int(clients), "setting": {"clients": clients}}
        )
        for run in study_runs()
        for clients in ("64", "8", "1")
    ]
    for shuffled in (runs, runs[::-1]):
        both = compare_results(shuffled, [run.model_copy(update={"transactions": 7}) for run in runs], NAMES)
        labels = [pair.label for pair in both.pairs]
        assert labels[:3] == ["all-hdd, clients 1", "all-hdd, clients 8", "all-hdd, clients 64"]
        assert [label.split(",")[0] for label in labels] == sorted(label.split(",")[0] for label in labels)
        (transactions,) = (found for found in both.differences if found.what == "Transactions a run")
        assert (transactions.a, transactions.b) == (["\u2013"], ["7"])


def test_each_pattern_is_compared_by_itself_and_no_rate_of_them_all() -> None:
    def measured(reads: int) -> list[RunResult]:
        counts = {"seq1m-q1t1-read": reads, "rnd4k-q1t1-write": 50}
        patterns = {
            name: PatternResult(requests=count, bytes=count, elapsed_s=1) for name, count in counts.items()
        }
        return [
            run.model_copy(update={"patterns": patterns, "transactions": reads + 50}) for run in study_runs()
        ]

    both = compare_results(measured(100), measured(200), NAMES)
    assert "whole runs cannot be compared, since each access pattern has a rate of its own" in both.headline
    verdicts = {figure.what: figure.verdict for figure in both.pairs[0].of("score")}
    assert verdicts == {"seq1m-q1t1-read": "B more", "rnd4k-q1t1-write": "no significant difference"}


def test_losses_of_power_cuts_are_not_passed_over() -> None:
    cut = PowerCuts(durability="off", durable=False, promise="none", clean_start_s=1, cuts=[])
    runs = [run.model_copy(update={"power_cuts": cut}) for run in study_runs()]
    with pytest.raises(TierwiseError, match="before: results of power cuts"):
        compare_results(runs, runs, NAMES)


def test_what_only_one_has_is_named_and_nothing_in_common_is_refused() -> None:
    less = {name: LAPS_S[name] for name in ("all-hdd", "log-ssd")}
    assert compare_results(lap_runs(), lap_runs(less), NAMES).unmatched == ["only in before: all-ssd"]
    others = {"data-ssd": LAPS_S["all-ssd"]}
    with pytest.raises(TierwiseError, match="no placement and setting in common"):
        compare_results(lap_runs(less), lap_runs(others | {"all-ssd": LAPS_S["all-ssd"]}), NAMES)
    with pytest.raises(TierwiseError, match="none of its 15 runs is valid"):
        compare_results(study_runs(status="failed", problems=["x"]), study_runs(), NAMES)


def test_a_lap_that_was_stopped_gives_bounds() -> None:
    capped = compare_results(lap_runs(cap_s=1.0), lap_runs(), NAMES)
    write = row(capped, "all-hdd", "write", "elapsed")
    assert write.a is not None and write.a.bound is BoundKind.AT_LEAST
    assert (
        write.ratio is not None
        and write.ratio.bound is BoundKind.AT_MOST
        and write.verdict == "left open by the cap"
    )
    both = compare_results(lap_runs(cap_s=1.0), lap_runs(cap_s=1.0), NAMES)
    assert row(both, "all-hdd", "write", "elapsed").ratio is None


def test_few_repeats_give_no_verdict() -> None:
    few = compare_results(lap_runs(repeats=2), lap_runs(SLOW_WRITE, repeats=2), NAMES)
    assert row(few, "all-hdd", "write", "elapsed").verdict == "too few repeats"
    assert "too few repeats to tell" in few.headline


def test_conditions_that_differ_are_listed() -> None:
    runs = lap_runs()
    machine = runs[0].machine.model_copy(update={"host": "other", "cores": 64})
    edited = {"devices": [device.model_copy(update={"digest": "edited"}) for device in runs[0].devices]}
    on_edited = compare_results(runs, [run.model_copy(update=edited) for run in runs], NAMES).differences
    moved = [run.model_copy(update={"role_devices": {Role.LOG: "ssd"}}) for run in runs]
    placed = compare_results(runs, moved, NAMES).differences
    assert "postgres: placement all-hdd" in {difference.what for difference in placed}
    named = {difference.what: difference.b for difference in on_edited}
    assert named["Device hdd"] == ["emulated: hdd-10k-18g-fc (hdd) (content edited)"]
    settings = runs[0].engine.settings | {"fsync": "off"}
    engine = runs[0].engine.model_copy(update={"version": "19.1", "settings": settings})
    changed = [run.model_copy(update={"machine": machine, "engine": engine}) for run in runs]
    differences = {
        difference.what: difference for difference in compare_results(runs, changed, NAMES).differences
    }
    assert {"Machine", "Processor", "Engine", "postgres: fsync"} == set(differences)
    assert differences["postgres: fsync"].b == ["off"]


@pytest.mark.parametrize("format", ["md", "csv", "json", "text"])
def test_texts_hold_every_figure(comparison: ResultsComparison, format: str) -> None:
    text = comparison_text(comparison, format)
    figures = sum(len(pair.rows) for pair in comparison.pairs)
    if format == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == figures and {len(row) for row in rows} == {20}
        write = next(
            r for r in rows if (r["pair"], r["name"], r["measure"]) == ("log-ssd", "write", "elapsed")
        )
        assert float(write["ratio"]) == pytest.approx(2.0, rel=0.05) and write["a_repeats"] == "5"
    elif format == "json":
        assert json.loads(text)["pairs"] == comparison.model_dump(mode="json")["pairs"]
    elif format == "text":
        assert text.count("\n") >= figures and "|" not in text
        assert re.search(r"^write +Elapsed ", text, re.MULTILINE)
    else:
        assert text.count("\n| ") >= figures
        assert "| write | Elapsed |" in text
    assert "None" not in text


def test_command_writes_a_page_that_needs_nothing(tmp_path: Path) -> None:
    for name, laps in (("a", LAPS_S), ("b", SLOW_WRITE)):
        directory = tmp_path / name / "latest"
        directory.mkdir(parents=True)
        for run in lap_runs({"all-hdd": laps["all-hdd"]}, repeats=3):
            append_record(directory / RESULTS_FILE, run)
    app = typer.Typer()
    app.command()(compare)
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, [str(tmp_path / "a"), str(tmp_path / "b" / "latest"), "-o", str(out)])
    assert done.exit_code == 0, done.output
    text = out.read_text("utf-8")
    assert text.count("<svg") == 2 and "<script" not in text and "B slower" in text
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {"http://www.w3.org/2000/svg"}
    printed = CliRunner().invoke(app, [str(tmp_path / "a"), f"{tmp_path / 'b'}:postgres"])
    assert "B over A" in printed.output
    sets, plain = [str(tmp_path / "a"), f"{tmp_path / 'b'}:postgres"], tmp_path / "comparison.txt"
    for asked in ([*sets, "-o", str(plain)], [*sets, "-o", str(plain), "--format", "text"]):
        assert CliRunner().invoke(app, asked).exit_code == 0
        assert plain.read_text("utf-8") == printed.output
    unknown = CliRunner().invoke(app, [*sets, "-o", str(tmp_path / "comparison.xlsx")])
    assert isinstance(unknown.exception, TierwiseError) and "comparison.xlsx" in str(unknown.exception)
    missing = CliRunner().invoke(app, [str(tmp_path / "a"), f"{tmp_path / 'b'}:oracle"])
    assert isinstance(missing.exception, TierwiseError) and "oracle" in str(missing.exception)
    nowhere = CliRunner().invoke(app, [str(tmp_path / "a"), str(tmp_path / "c")])
    assert isinstance(nowhere.exception, TierwiseError) and "no results there" in str(nowhere.exception)
