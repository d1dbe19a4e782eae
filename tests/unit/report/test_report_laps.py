"""Reports of laps, sweeps and many studies at once."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from support.html import Page
from support.lap_results import LAP_INFO, LAPS_S, SWEEP_INFO, lap_runs, sweep_runs
from support.results_factory import INFO, study_runs
from tierwise.cli.output import print_document
from tierwise.lab.analysis.paper_figures import paper_sweep_rows
from tierwise.lab.analysis.study_answer import StudyAnswer, build_study_answer
from tierwise.lab.cli import report
from tierwise.lab.report.charts.study_charts import study_figures, sweep_figures, sweep_ratios_figure
from tierwise.lab.report.study.study_document import study_answer_document
from tierwise.lab.report.study.study_page import StudyChapter, combined_studies_page, study_answer_page
from tierwise.model.errors import TierwiseError
from tierwise.model.statistics import BoundKind, RatioVerdict
from tierwise.report.charts import PAGE_NARROW, PAGE_WIDE, to_svg
from tierwise.report.render import to_html_page
from tierwise.results import PaperValue, RunResult, StudyInfo
from tierwise.results.result_files import append_record, write_study_info

QUERIES = {f"q{n}": 0.05 * n for n in range(1, 23)}


def answer_of(runs: list[RunResult], info: StudyInfo = LAP_INFO) -> StudyAnswer:
    return build_study_answer(runs, info)


def shown(answer: StudyAnswer) -> str:
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    print_document(study_answer_document(answer), console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(lap_runs(), id="five repeats"),
        pytest.param(lap_runs(repeats=2), id="two repeats"),
        pytest.param(lap_runs(cap_s=0.5), id="capped"),
        pytest.param(sweep_runs({"64M": 1.2, "256M": 1.0, "1G": 1.15}, 3, "delete"), id="swept"),
    ],
)
def test_terminal_says_what_helps_which_lap(runs: list[RunResult], snapshot: SnapshotAssertion) -> None:
    text = shown(answer_of(runs, SWEEP_INFO))
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    assert text == snapshot


def test_a_capped_lap_is_never_taken_for_one_that_ended() -> None:
    (comparison,) = answer_of(lap_runs(cap_s=0.7)).comparisons
    laps = {lap.label: lap for lap in comparison.laps}
    delete = laps["delete"].cell("all-ssd")
    assert delete is not None and delete.speedup is not None and delete.speedup.bound is BoundKind.AT_LEAST
    assert delete.verdict is RatioVerdict.FASTER and delete.speedup.estimate == pytest.approx(
        0.7 / 0.36, rel=0.05
    )
    write = laps["write"].cell("log-ssd")
    assert write is not None and write.speedup is None and laps["write"].slowest_s is None
    base = comparison.rows[0].summary
    assert base.capped == 5 and base.elapsed is not None and base.elapsed.bound is BoundKind.AT_LEAST
    assert base.rate is None


def test_placements_that_the_engine_cannot_honour_are_named() -> None:
    info = LAP_INFO.model_copy(update={"skipped": {"undo-ssd": "this engine has no undo"}})
    answer = answer_of(lap_runs(repeats=1), info)
    assert "Not run: undo-ssd: this engine has no undo" in " ".join(shown(answer).split())
    page = to_html_page(combined_studies_page([StudyChapter("bahrain", info.question, answer, "")]))
    assert "this engine has no undo" in page


def test_one_capped_repeat_is_enough_for_a_bound() -> None:
    runs = lap_runs()
    first = runs[0].laps[0].model_copy(update={"status": "capped", "elapsed_s": 1.0})
    runs[0] = runs[0].model_copy(update={"laps": [first, *runs[0].laps[1:]]})
    (comparison,) = answer_of(runs).comparisons
    cell = comparison.laps[0].cell("all-hdd")
    assert cell is not None and cell.stopped and (cell.ok, cell.capped) == (4, 1)


def test_wrong_and_failed_laps_have_no_time() -> None:
    runs = lap_runs(repeats=3)
    for index, run in enumerate(runs):
        wrong = run.laps[0].model_copy(update={"status": "wrong", "problem": "sum 7", "checksum": 7})
        runs[index] = run.model_copy(update={"laps": [wrong, *run.laps[1:]]})
    (comparison,) = answer_of(runs).comparisons
    cell = comparison.laps[0].cells[0]
    assert (cell.elapsed, cell.failed, cell.problems, cell.checksums) == (None, 3, ["sum 7"], [7])


def test_laps_of_one_name_in_several_streams_are_told_apart() -> None:
    runs = lap_runs(repeats=1)
    doubled = [
        run.model_copy(
            update={"laps": [*run.laps, *(lap.model_copy(update={"stream": 1}) for lap in run.laps)]}
        )
        for run in runs
    ]
    (comparison,) = answer_of(doubled).comparisons
    assert [lap.label for lap in comparison.laps][::4] == ["write, stream 0", "write, stream 1"]


def test_paper_beside_laps_and_points_of_a_sweep() -> None:
    (comparison,) = answer_of(lap_runs()).comparisons
    rows = {(row.label, row.placement): row for row in comparison.paper}
    write = rows["speedup of write", "all-ssd"]
    assert (write.paper_ratio, write.our_ratio) == (3, pytest.approx(3.0, rel=0.05))
    figure = PaperValue(
        placement="all-hdd", setting={"memory": "1G"}, what="elapsed", value=9, unit="s", source="x"
    )
    info = SWEEP_INFO.model_copy(update={"paper": [figure]})
    answer = build_study_answer(sweep_runs({"64M": 1.0, "1G": 0.5}, repeats=3), info)
    assert [len(comparison.paper) for comparison in answer.comparisons] == [0, 1]


def test_paper_along_a_sweep_is_a_ratio_to_the_least_value() -> None:
    figures = [
        PaperValue(placement="all-hdd", setting={"memory": m}, what="elapsed", value=v, unit="s", source="x")
        for m, v in (("64M", 10), ("1G", 5))
    ]
    info = SWEEP_INFO.model_copy(update={"paper": figures})
    answer = build_study_answer(sweep_runs({"64M": 1.0, "1G": 0.25}, repeats=3), info)
    (row,) = paper_sweep_rows(answer.sweeps[0], answer.figures_along(answer.sweeps[0]), info)
    assert (row.base, row.paper_ratio, row.our_ratio) == ("memory 64M", 2, pytest.approx(4))


def test_sweeps_flag_what_is_slower_with_more_and_nothing_else() -> None:
    calm = answer_of(sweep_runs({"64M": 1.0, "256M": 0.8, "1G": 0.8}), SWEEP_INFO)
    assert [sweep.anomalies for sweep in calm.sweeps] == [[]]
    odd = answer_of(sweep_runs({"1G": 1.3, "64M": 1.0, "256M": 1.0}, lap="update"), SWEEP_INFO)
    (sweep,) = odd.sweeps
    assert sweep.values == ["64M", "256M", "1G"]
    assert len([anomaly for anomaly in sweep.anomalies if anomaly.startswith("lap update on")]) == 3
    assert not [anomaly for anomaly in sweep.anomalies if anomaly.startswith("lap write")]
    assert "significantly slower with memory 1G" in shown(odd)


def test_sweeps_of_load_and_work_are_not_judged_and_times_of_other_work_have_no_ratio() -> None:
    def renamed(run: RunResult) -> RunResult:
        n = {"64M": 64, "1G": 1024}[run.setting["memory"]]
        workload = run.workload.model_copy(update={"constants": {"n": n}})
        return run.model_copy(update={"setting": {"constants.n": str(n)}, "workload": workload})

    runs = [renamed(run) for run in sweep_runs({"64M": 1.0, "1G": 3.0})]
    (sweep,) = answer_of(runs, LAP_INFO).sweeps
    assert sweep.anomalies == [] and len(sweep.values) == 2
    assert not [point for line in sweep.lines for point in line.points if point.ratio]
    assert sweep_ratios_figure(sweep, "all-hdd", 1) is None


def test_scores_stand_beside_placements_and_over_sweeps() -> None:
    runs = [
        run.model_copy(update={"scores": {"power": 3600 / (run.elapsed_s or 1)}})
        for run in sweep_runs({"64M": 1.0, "1G": 1.4}, repeats=3)
    ]
    answer = answer_of(runs, SWEEP_INFO)
    assert answer.comparisons[0].rows[0].summary.scores["power"].estimate == pytest.approx(984, rel=0.05)
    assert [anomaly for anomaly in answer.sweeps[0].anomalies if anomaly.startswith("score power on all-hdd")]


@pytest.fixture(scope="module")
def page() -> Page:
    """A page of capped laps over a sweep: everything that only laps have."""
    runs = sweep_runs({"64M": 1.0, "1G": 1.3}, repeats=3)
    return Page(to_html_page(study_answer_page(build_study_answer(runs, SWEEP_INFO))))


def test_page_shows_laps_counters_proof_and_sweep(page: Page) -> None:
    text = " ".join(page.text.replace("\u2060", "").split())
    for phrase in (
        "4501500 ✓", "Begin with log-ssd for", "memory swept, postgres", "Anomaly: the whole run on all-hdd",
        "Logical reads", "413 900", "Mean size of a write", "Proof of placement", "99 %",
        "Constants of the workload", "speedup of write", "no significant difference",
    ):  # fmt: skip
        assert phrase in text, phrase
    assert not re.search(r"\bNone\b|\bnan\b|Undefined", page.text)
    figures = {str(attrs.get("id")) for attrs in page.all("figure")}
    assert {"c1-laps", "c1-laps-normalised", "c1-laps-speedup", "c1-bytes", "c1-amplification"} <= figures
    assert {"s1-levels", "s1-ratios-1", "s1-ratios-3"} <= figures


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("look", [PAGE_WIDE, PAGE_NARROW], ids=["wide", "narrow"])
def test_bars_of_capped_queries_are_hollow_and_say_so(look: object) -> None:
    times = {"all-hdd": QUERIES, "all-ssd": {name: t / 3 for name, t in QUERIES.items()}}
    (comparison,) = answer_of(lap_runs(times, repeats=2, cap_s=0.9)).comparisons
    figures = study_figures(comparison)
    assert "laps-normalised" not in figures, "22 queries are read on the log scale"
    svg = to_svg(figures["laps"].draw(look), "x", "d")  # type: ignore[arg-type]
    assert svg.count(">≥ 900 ms, capped<") == 5
    assert svg.count("stroke-dasharray") >= 5
    assert f'width="{look.width_px}"' in svg  # type: ignore[attr-defined]


@pytest.mark.usefixtures("drawn")
def test_marks_of_anomalies_are_drawn() -> None:
    (sweep,) = answer_of(sweep_runs({"64M": 1.0, "1G": 1.3}, repeats=3), SWEEP_INFO).sweeps
    svg = to_svg(sweep_figures(sweep, "all-hdd")["levels"].draw(PAGE_WIDE), "x", "d")
    assert svg.count(">▲<") == 3


def test_one_page_for_many_studies_has_no_empty_section(tmp_path: Path) -> None:
    latest = tmp_path / "redo-placement" / "latest"
    latest.mkdir(parents=True)
    for run in study_runs(repeats=1):
        append_record(latest / report.RESULTS_FILE, run)
    write_study_info(latest / report.STUDY_FILE, INFO)
    failed = tmp_path / "bahrain" / "latest"
    failed.mkdir(parents=True)
    for run in study_runs(repeats=1, status="failed", problems=["the device died"]):
        append_record(failed / report.RESULTS_FILE, run.changed(study=LAP_INFO.name))
    write_study_info(failed / report.STUDY_FILE, LAP_INFO)
    empty = tmp_path / "crud" / "latest"
    empty.mkdir(parents=True)
    write_study_info(empty / report.STUDY_FILE, LAP_INFO.model_copy(update={"name": "crud"}))
    assert report.latest_studies_in(tmp_path) == [failed, empty, latest]
    assert report.latest_studies_in(latest) == []
    for unheeded in ({"png": tmp_path / "png"}, {"format": report.OutputFormat.JSON}):
        with pytest.raises(TierwiseError, match="holds the results of 3 studies"):
            report.report(tmp_path, **unheeded)  # type: ignore[arg-type]

    missing = tmp_path / "melbourne" / "latest"
    chapters = [report.study_chapter_of(directory) for directory in (latest, failed, empty, missing)]
    out = report.write_combined_report([*chapters, StudyChapter("dss-load", problem="no room")], tmp_path)
    assert out == tmp_path / "report.html"
    page = Page(out.read_text("utf-8"))
    assert len(page.all("article")) == 5
    seen = " ".join(page.text.replace("\u2060", "").split())
    assert (
        "the device died" in seen
        and "No answer: no room" in seen
        and "results.jsonl" in seen
        and "melbourne" in seen
    )
    targets = [attrs.get("id") for _, attrs in page.tags if attrs.get("id")]
    assert len(targets) == len(set(targets))
    assert all((link["href"] or "").removeprefix("#") in targets for link in page.all("a"))
    assert not page.all("script") and not re.search(r"\bNone\b|Undefined", page.text)


def test_contents_of_many_studies_name_findings() -> None:
    text = to_html_page(
        combined_studies_page(
            [StudyChapter("bahrain", LAP_INFO.question, answer_of(lap_runs(repeats=3)), "")]
        )
    )
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert "bahrain" in contents and "times faster" in contents


def test_every_time_of_laps_comes_from_valid_runs() -> None:
    runs = lap_runs()
    bad = runs[0].model_copy(update={"status": "invalid", "problems": ["late"]})
    (comparison,) = answer_of([bad, *runs[1:]]).comparisons
    cell = comparison.laps[0].cell("all-hdd")
    assert cell is not None and cell.ok == 4
    assert set(LAPS_S) == {row.placement for row in comparison.rows}
