"""The report as a file: complete, self-contained, safe, the same twice."""

from __future__ import annotations

import re

import pytest

from support import drawings
from support.html import Page
from support.outcomes import OUTCOMES
from support.results_factory import INFO, study_runs
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.report.charts.study_charts import study_figures
from tierwise.lab.report.study.study_page import study_answer_page
from tierwise.report.charts import PAGE_NARROW, PAGE_WIDE, to_svg
from tierwise.report.palette import DARK, LIGHT, placement_colour_names
from tierwise.report.render import to_html_page
from tierwise.results import RunResult


def page_of(runs: list[RunResult]) -> str:
    return to_html_page(study_answer_page(build_study_answer(runs, INFO)))


@pytest.fixture(scope="module")
def text() -> str:
    with drawings.drawn():
        return page_of(study_runs())


def test_needs_nothing_from_outside(text: str) -> None:
    page = Page(text)
    assert not page.all("script") and not page.all("link") and not page.all("img")
    links = [v for _, attrs in page.tags for k, v in attrs.items() if k in {"href", "src", "xlink:href"}]
    assert not [link for link in links if link and not link.startswith("#")]
    assert not re.search(r"@import|url\((?!#)", text)
    urls = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert urls <= {"http://www.w3.org/2000/svg"}, "only the name of a name space looks like an address"


def test_every_chart_is_there_twice_with_words_for_it(text: str) -> None:
    drawings = Page(text).all("svg")
    assert len(drawings) == 2 * 9
    assert all(svg["role"] == "img" and len(svg["aria-label"] or "") > 30 for svg in drawings)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def test_colours_of_drawings_are_variables_of_both_grounds(text: str) -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", text))
    assert used <= set(LIGHT) and set(LIGHT) == set(DARK)
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert set(re.findall(r'"(#[0-9a-fA-F]{3,6})"', drawn)) <= {"#ffffff", "#1c1e21"}, "ink on bars only"


def test_says_everything_it_must(text: str) -> None:
    seen = " ".join(Page(text).text.replace("\u2060", "").split())
    for phrase in (
        "Move the log first.",
        "Moving the log to a DRAM SSD (ssd-dram-fc) makes order entry 7.8 times faster",
        "42.18 s", "Oracle 9i", "15 of 15 runs are valid", "Every emulated device kept its bound",
        "shared_buffers", "512MB", "hdd-10k-18g-fc", "Example CPU at 2.5 GHz", "Sampling error",
    ):  # fmt: skip
        assert phrase in seen


@pytest.mark.usefixtures("drawn")
def test_same_results_same_page(text: str) -> None:
    assert page_of(study_runs()) == text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_any_outcome_gives_a_whole_page(outcome: str) -> None:
    text = page_of(OUTCOMES[outcome])
    page = Page(text)
    assert len(page.all("h1")) == 1
    assert not re.search(r"\bNone\b|\bnan\b|Undefined", page.text)


def test_text_from_results_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    text = page_of(study_runs(status="failed", problems=[evil]))
    assert "<script" not in text and "&lt;script&gt;" in text


def test_several_comparisons_have_a_section_each() -> None:
    runs = study_runs(setting={"clients": "1"}) + study_runs(setting={"clients": "9"})
    page = Page(page_of(runs))
    assert [article["id"] for article in page.all("article")] == ["s1", "c1", "c2"]
    targets = {attrs.get("id") for _, attrs in page.tags}
    assert all((link["href"] or "").removeprefix("#") in targets for link in page.all("a"))


def test_what_no_one_measured_is_absent_and_said_to_be() -> None:
    bare = {"io": {}, "waits": None, "latency": {}, "cpu": None, "elapsed_without_log_wait_s": None}
    runs = [run.model_copy(update=bare) for run in study_runs()]
    page = Page(page_of(runs))
    for phrase in ("recorded waits", "recorded I/O by role", "recorded latencies"):
        assert f"No valid run {phrase}." in page.text


@pytest.mark.usefixtures("drawn")
def test_charts_hold_their_width_and_their_labels() -> None:
    (comparison,) = build_study_answer(study_runs(), INFO).comparisons
    for figure in study_figures(comparison).values():
        for look in (PAGE_WIDE, PAGE_NARROW):
            svg = to_svg(figure.draw(look), "x", "d")
            assert f'width="{look.width_px}"' in svg
            assert 'opacity="0"' not in svg


def test_a_placement_keeps_its_colour_and_the_baseline_is_grey() -> None:
    names = [f"p{i}" for i in range(9)]
    colours = placement_colour_names(names, "p3")
    assert colours["p3"] == "baseline"
    assert len({colours[name] for name in names[:7]}) == 7
    assert set(colours.values()) <= set(LIGHT)


def test_real_devices_show_their_totals() -> None:
    def on_real_mounts(run: RunResult) -> RunResult:
        io = next(iter(run.io.values()))
        devices = [d.model_copy(update={"kind": "real", "path": "/mnt", "io": io}) for d in run.devices]
        return run.model_copy(update={"io": {}, "devices": devices})

    page = Page(page_of([on_real_mounts(run) for run in study_runs()]))
    assert "whole device" in page.text and "No valid run recorded I/O" not in page.text
    assert any("busy" in (svg["aria-label"] or "") for svg in page.all("svg"))


@pytest.mark.usefixtures("drawn")
def test_interval_bars_end_where_the_interval_ends() -> None:
    (comparison,) = build_study_answer(study_runs(), INFO).comparisons
    svg = to_svg(study_figures(comparison)["speedup"].draw(PAGE_WIDE), "x", "d")
    assert 'stroke-width="9"' in svg and 'stroke-linecap="round"' not in svg


@pytest.mark.usefixtures("drawn")
def test_marks_of_invalid_runs_can_be_seen_on_both_grounds() -> None:
    runs = study_runs()
    runs[3] = runs[3].model_copy(update={"status": "invalid", "problems": ["too late"]})
    (comparison,) = build_study_answer(runs, INFO).comparisons
    svg = to_svg(study_figures(comparison)["order"].draw(PAGE_WIDE), "x", "d")
    assert "invalid" in svg and not re.search(r'(fill|stroke)="(black|#000)', svg)
