"""The report in a real browser, offline, on wide and narrow screens, light and dark."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browsers import needs_browser, overflow_px, show_file
from support.lap_results import SWEEP_INFO, lap_runs
from support.results_factory import INFO, PLACEMENTS, study_runs
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.report.study.study_page import study_answer_page
from tierwise.report.render import to_html_page
from tierwise.results import RunResult

pytestmark = needs_browser

WIDTHS = [390, 1280]
FIGURES = ["elapsed", "speedup", "waits", "io", "bytes", "requests", "latency", "paper", "order"]
LONG_NAMES = {"log-ssd": "log-and-volumes-ssd", "all-ssd": "doublewrite-and-everything-else-ssd"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("report"), study_runs())


def write(directory: Path, runs: list[RunResult]) -> Path:
    path = directory / "report.html"
    path.write_text(to_html_page(study_answer_page(build_study_answer(runs, INFO))), encoding="utf-8")
    return path


@pytest.mark.parametrize("width_px", WIDTHS)
def test_opens_offline_without_a_complaint(browser: Any, page: Path, width_px: int) -> None:
    show_file(browser, page, width_px)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    headline = browser.find_element("css selector", "h1")
    assert headline.is_displayed() and headline.text == "Move the log first."
    assert overflow_px(browser) == 0


@pytest.mark.parametrize("width_px", WIDTHS)
def test_every_chart_is_drawn_once_and_nothing_sticks_out(browser: Any, page: Path, width_px: int) -> None:
    show_file(browser, page, width_px)
    for name in FIGURES:
        shown = [
            svg
            for svg in browser.find_elements("css selector", f"#c1-{name} svg")
            if svg.size["width"] > 0 and svg.size["height"] > 0
        ]
        assert len(shown) == 1, name
        assert shown[0].size["width"] >= min(width_px - 60, 700)
        assert outside(browser, shown[0]) == [], name


def outside(browser: Any, svg: Any) -> list[str]:
    """Texts of a drawing that its frame would clip."""
    script = """
        const frame = arguments[0].getBoundingClientRect();
        return [...arguments[0].querySelectorAll('text')].filter(text => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1
                || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
        }).map(text => text.textContent);
    """
    return list(browser.execute_script(script, svg))


@pytest.fixture(scope="module")
def wide_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long names and many placements."""

    def renamed(run: RunResult) -> RunResult:
        return run.model_copy(update={"placement": LONG_NAMES.get(run.placement, run.placement)})

    runs = [renamed(run) for run in study_runs(placements=list(PLACEMENTS))]
    return write(tmp_path_factory.mktemp("wide"), runs)


@pytest.mark.parametrize("width_px", WIDTHS)
def test_long_names_and_many_placements_stay_inside(browser: Any, wide_page: Path, width_px: int) -> None:
    show_file(browser, wide_page, width_px)
    assert overflow_px(browser) == 0
    table, section = (
        browser.find_element("css selector", f"section:first-of-type{x}") for x in (" .cards", "")
    )
    assert table.size["width"] <= section.size["width"]
    for svg in browser.find_elements("css selector", "figure svg"):
        if svg.size["width"] > 0:
            assert outside(browser, svg) == []


@pytest.fixture(scope="module")
def lap_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [*lap_runs(cap_s=0.7, setting={"memory": "64M"}), *lap_runs(cap_s=0.7, setting={"memory": "1G"})]
    path = tmp_path_factory.mktemp("laps") / "report.html"
    path.write_text(to_html_page(study_answer_page(build_study_answer(runs, SWEEP_INFO))), encoding="utf-8")
    return path


@pytest.mark.parametrize("width_px", WIDTHS)
def test_laps_and_sweeps_stay_inside(browser: Any, lap_page: Path, width_px: int) -> None:
    show_file(browser, lap_page, width_px)
    assert overflow_px(browser) == 0 and browser.get_log("browser") == []
    for svg in browser.find_elements("css selector", "figure svg"):
        if svg.size["width"] > 0:
            assert outside(browser, svg) == []


def test_text_of_charts_can_be_selected(browser: Any, page: Path) -> None:
    show_file(browser, page, 1280)
    script = """
        const svg = document.querySelector('#c1-elapsed .wide svg');
        const range = document.createRange(); range.selectNodeContents(svg);
        const selection = getSelection(); selection.removeAllRanges(); selection.addRange(range);
        return selection.toString();
    """
    assert "41.8 s" in browser.execute_script(script)
    text = "getComputedStyle(document.querySelector('#c1-elapsed text'))"
    styles = browser.execute_script(f"return [{text}.userSelect, {text}.pointerEvents]")
    assert styles == ["text", "auto"]


def test_settings_fold_and_unfold(browser: Any, page: Path) -> None:
    show_file(browser, page, 1280)
    settings = browser.find_element("xpath", "//details[contains(summary, 'settings of')]")
    inside = settings.find_element("css selector", "dl")
    assert not inside.is_displayed()
    settings.find_element("css selector", "summary").click()
    assert inside.is_displayed() and "shared_buffers" in inside.text
    settings.find_element("css selector", "summary").click()
    assert not inside.is_displayed()


@pytest.mark.parametrize("dark", [False, True])
def test_ground_and_ink_contrast_in_light_and_dark(browser: Any, page: Path, dark: bool) -> None:
    show_file(browser, page, 1280, dark)
    script = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
    ground, ink = (luminance(colour) for colour in browser.execute_script(script))
    assert (ground < ink) is dark
    label = "return getComputedStyle(document.querySelector('#c1-waits .wide text')).fill"
    axis = luminance(browser.execute_script(label))
    for text in (ink, axis):
        assert (max(ground, text) + 0.05) / (min(ground, text) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` by WCAG 2."""
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width_px", WIDTHS)
def test_screenshot_is_not_blank(browser: Any, page: Path, width_px: int, dark: bool) -> None:
    show_file(browser, page, width_px, dark)
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    assert len(set(pixels(base64.b64decode(shot["data"])))) > 50


def pixels(png: bytes) -> Iterator[bytes]:
    """Filtered scan lines of a PNG in pieces of a pixel; enough to count how much goes on in it."""
    position, data = 8, b""
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        if png[position + 4 : position + 8] == b"IDAT":
            data += png[position + 8 : position + 8 + length]
        position += 12 + length
    raw = zlib.decompress(data)
    return (raw[start : start + 4] for start in range(0, len(raw), 4))


def test_prints_on_paper(browser: Any, page: Path) -> None:
    show_file(browser, page, 1280, dark=True)
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF") and len(printed) > 50_000
