"""The page of an advice in a real browser: drag, keys, links, filters, exports, print, access, names."""

from __future__ import annotations

import base64
import csv
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browsers import (
    card,
    column,
    needs_browser,
    placement,
    show,
    tile,
    until,
    wait,
    webdriver,
)
from support.fake_memory import advice as advice_with_memory
from support.fake_replay import predictor
from support.fake_tables import tables_predictor
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.advise.table_advice import table_advice_beside
from tierwise.device_models.instances import find_instances
from tierwise.predict import RECORDED
from tierwise.report.advice import AdviceSurvey, advice_page, survey_advice

ActionChains, Keys = webdriver.ActionChains, webdriver.Keys
pytestmark = needs_browser

DEVICES = ["nvme-dc", "gp3", "io2"]
HOSTILE = "</script><img src=x onerror=alert(1)>"
WIDTHS = [400, 1280, 3840]
MOST_BYTES = 1_500_000


def made(recording: str = "shop", **facts: Any) -> AdviceSurvey:
    """An advice on the toy recording, whose files are on a slow disk."""
    toy = predictor(**facts)
    return survey_advice(toy, advise(toy, AdviceOptions(DEVICES)), PaymentTerms(), Path(recording))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("advice") / "advice.html"
    file.write_text(advice_page(made()), "utf-8")
    return file


@pytest.fixture(autouse=True)
def quiet(browser: Any) -> Iterator[None]:
    """Afterwards the console must be empty and nothing must have been asked of a network."""
    yield
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


MANY = [f"public.orders_of_the_year_{place:02d}" for place in range(59)]


def made_of_tables(hostile: str = HOSTILE) -> AdviceSurvey:
    """An advice on a recording of 60 tables and indexes, one with a hostile name, on a named machine."""
    toy = tables_predictor([MANY[0], hostile, *MANY[1:]])
    advice = advise(toy, AdviceOptions(DEVICES, instances=find_instances(["m6i.large"])))
    tables = table_advice_beside(toy, advice.devices, PaymentTerms())
    advice = advice.model_copy(update={"tables": tables, "memory": advice_with_memory().memory})
    return survey_advice(toy, advice, PaymentTerms(), Path("shop"), instance="m6i.large")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tables") / "advice.html"
    file.write_text(advice_page(made_of_tables()), "utf-8")
    return file


def centre(browser: Any, element: Any) -> dict[str, float]:
    script = (
        "const b = arguments[0].getBoundingClientRect(); return {x: b.x + b.width / 2, y: b.y + b.height / 2}"
    )
    measured: dict[str, float] = browser.execute_script(script, element)
    return measured


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width_px", WIDTHS)
def test_the_page_opens_at_the_advice_and_fits(browser: Any, page: Path, width_px: int, dark: bool) -> None:
    show(browser, page, width_px, dark)
    advised = {"log": "ssd-nvme-dc", "data": "ssd-nvme-dc", "index": "ssd-nvme-dc"}
    assert placement(browser) == advised
    headline = browser.find_element("css selector", "h1").text.replace("\u2060", "")
    text = r"Move .* to ssd-nvme-dc: [\d.]+ times the throughput for [\d.]+\s\$/month\."
    assert re.fullmatch(text, headline)
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth - {root}.clientWidth") == 0


def test_a_drag_by_mouse_changes_every_figure_at_once(browser: Any, page: Path) -> None:
    show(browser, page)
    before = [tile(browser, name) for name in ("rate", "p50", "p99", "cost")]
    to = column(browser, 3)
    held = ActionChains(browser).click_and_hold(card(browser, "log")).move_to_element(to)
    held.perform()
    while_held = [tile(browser, name) for name in ("rate", "p50", "p99", "cost")]
    ActionChains(browser).release().perform()
    after = [tile(browser, name) for name in ("rate", "p50", "p99", "cost")]
    assert placement(browser)["log"] == "volume-aws-io2"
    assert all(tile != other for tile, other in zip(before, after, strict=True))
    assert while_held == after
    assert card(browser, "log") in to.find_elements("css selector", "[data-role]")


def test_a_drag_by_touch_on_the_grip(browser: Any, page: Path) -> None:
    show(browser, page)
    end = centre(browser, column(browser, 0))
    start = centre(browser, card(browser, "log").find_element("css selector", ".grip"))
    for kind, points in (("touchStart", [start]), ("touchMove", [end]), ("touchEnd", [])):
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    until(browser, "tierwise.explorer.placement().log === 'recorded'")


def test_arrow_keys_move_a_card_and_say_so(browser: Any, page: Path) -> None:
    show(browser, page)
    card(browser, "log").send_keys(Keys.ARROW_RIGHT)
    assert placement(browser)["log"] == "volume-aws-gp3"
    assert browser.switch_to.active_element == card(browser, "log")
    attribute = browser.find_element("id", "said").get_attribute("textContent")
    assert attribute.startswith("log to volume-aws-gp3: ") and "a month" in attribute
    card(browser, "log").send_keys(Keys.HOME)
    card(browser, "log").send_keys(Keys.ARROW_LEFT)
    assert placement(browser)["log"] == RECORDED


def test_the_explorer_shows_what_a_prediction_says(browser: Any, page: Path) -> None:
    """Whatever is dragged, its figures are those of its own placement."""
    page_of_few = made().survey
    show(browser, page)
    for number, prediction in list(enumerate(page_of_few.predictions))[::5]:
        assert prediction and prediction.rate_per_s and prediction.p99_us
        shown = browser.execute_script(f"return tierwise.placements.at({number})")
        assert shown["rate"] == pytest.approx(prediction.rate_per_s.value, rel=1e-3)
        assert shown["p99_us_high"] == pytest.approx(prediction.p99_us.high, rel=1e-3)
        names = browser.execute_script(f"return tierwise.placements.asObject({number})")
        assert names == {role: prediction.scenario.placement.get(role, RECORDED) for role in names}


def test_a_link_brings_the_placement_and_the_filters_back(browser: Any, page: Path) -> None:
    show(browser, page)
    card(browser, "data").send_keys(Keys.HOME)
    browser.find_element("id", "filter-cost").send_keys("50")
    chosen, link = placement(browser), browser.current_url
    show(browser, page, fragment="#" + link.partition("#")[2])
    assert placement(browser) == chosen
    assert browser.find_element("id", "filter-cost").get_attribute("value") == "50"
    show(browser, page, fragment="#log=no-such-device&p99=-3&power=%3Cb%3E&lasts=x")
    assert placement(browser)["log"] == "ssd-nvme-dc", "what a link says wrongly is left out"


def test_filters_leave_what_passes(browser: Any, page: Path) -> None:
    show(browser, page)
    every = browser.execute_script("return tierwise.filters.passing().length")
    assert every == 4**3
    browser.find_element("id", "filter-p99").send_keys("5")
    left = browser.execute_script(
        "return tierwise.filters.passing().map(n => tierwise.placements.at(n).p99_us)"
    )
    assert 0 < len(left) < every and max(left) <= 5000
    assert f"{len(left)} of {every}" in browser.find_element("css selector", ".count").text
    until(browser, "document.querySelectorAll('#chart path').length > 0")
    browser.find_element("id", "filter-p99").clear()
    browser.find_element("id", "filter-cost").send_keys("1")
    assert "does not pass" in browser.find_element("id", "note").text


def test_a_click_on_the_chart_chooses_its_placement(browser: Any, page: Path) -> None:
    show(browser, page)
    dots = browser.find_elements("css selector", "#chart .mark-symbol path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", dots[0])
    ActionChains(browser).move_to_element(dots[0]).perform()
    until(browser, "!document.getElementById('tip').hidden")
    ActionChains(browser).click(dots[0]).perform()
    until(browser, "Object.values(tierwise.explorer.placement()).some(device => device !== 'ssd-nvme-dc')")


def saved(browser: Any, downloads: Path, kind: str) -> bytes:
    file = downloads / f"placements-shop.{kind}"
    browser.find_element("id", f"save-{kind}").click()
    wait.WebDriverWait(browser, 60).until(lambda _: file.exists() and file.stat().st_size)
    return file.read_bytes()


def test_exports(browser: Any, page: Path, tmp_path: Path) -> None:
    allow = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Page.setDownloadBehavior", allow)
    show(browser, page, fragment="#cost=20")
    rows = list(csv.DictReader(saved(browser, tmp_path, "csv").decode().splitlines()))
    assert len(rows) == browser.execute_script("return tierwise.filters.passing().length") > 1
    assert all(float(row["cost"]) <= 20 for row in rows) and set(rows[0]) >= {"log", "data", "rate", "p99_us"}
    drawing = saved(browser, tmp_path, "svg").decode()
    assert drawing.startswith("<svg") and "Cost a month" in drawing and "var(" not in drawing
    assert saved(browser, tmp_path, "png").startswith(b"\x89PNG")
    command = browser.find_element("id", "command").text
    assert command == "tierwise predict shop --place log=ssd-nvme-dc,data=ssd-nvme-dc,index=ssd-nvme-dc"


@pytest.mark.parametrize("which", ["page", "tables"])
def test_it_prints_on_two_pages(browser: Any, which: str, request: pytest.FixtureRequest) -> None:
    show(browser, request.getfixturevalue(which), dark=True)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    assert len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed))) == 2


@pytest.mark.parametrize("which", ["page", "tables"])
@pytest.mark.parametrize(("width_px", "dark"), [(400, False), (1280, True)])
def test_everybody_can_use_it(
    browser: Any, which: str, width_px: int, dark: bool, request: pytest.FixtureRequest
) -> None:
    page: Path = request.getfixturevalue(which)
    spec = importlib.util.find_spec("axe_core_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-core-python is not installed")
    show(browser, page, width_px, dark)
    browser.execute_script((Path(spec.origin).parent / "axe.min.js").read_text("utf-8"))
    run = "const done = arguments[0]; axe.run().then(found => done(found.violations))"
    violations = browser.execute_async_script(run)
    assert [
        (violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations
    ] == []


def switch(browser: Any, selector: str) -> Any:
    element = browser.find_element("css selector", selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    return element


def shown_rate(browser: Any) -> float:
    measured: float = browser.execute_script("return tierwise.state.figures(tierwise.state.number).rate")
    return measured


def moved_rows(browser: Any) -> set[str]:
    rows = browser.find_elements("css selector", "#table-rows tr.chosen th")
    return {row.get_attribute("textContent") for row in rows}


@pytest.mark.parametrize("width_px", [400, 1280])
def test_a_simulated_set_of_tables_is_chosen_by_mouse(browser: Any, tables: Path, width_px: int) -> None:
    advice = made_of_tables().advice.tables
    assert advice and tables.stat().st_size <= MOST_BYTES
    show(browser, tables, width_px)
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth - {root}.clientWidth") == 0
    assert len(browser.find_elements("css selector", "#table-rows tbody tr")) == 60
    first = advice.devices[0]
    assert first.recommended and first.recommended.prediction.rate_per_s
    (row,) = [
        element
        for element in browser.find_elements("css selector", "#table-sets tbody tr")
        if element.is_displayed() and "(recommended)" in element.text
    ]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", row)
    row.find_element("css selector", "label span").click()
    assert shown_rate(browser) == pytest.approx(first.recommended.prediction.rate_per_s.value, rel=1e-3)
    assert set(placement(browser).values()) == {RECORDED}
    assert moved_rows(browser) == set(first.recommended.names)
    assert tile(browser, "power") != "as today" and first.device in browser.find_element("id", "note").text
    command = browser.find_element("id", "command").text
    assert all(pattern in command for pattern in first.recommended.patterns)
    show(browser, tables, width_px, fragment="#" + browser.current_url.partition("#")[2])
    assert moved_rows(browser) == set(first.recommended.names), "the link has the set"
    card(browser, "log").send_keys(Keys.ARROW_RIGHT)
    assert moved_rows(browser) == set() and placement(browser)["log"] == "ssd-nvme-dc"


def test_sets_of_tables_by_keyboard(browser: Any, tables: Path) -> None:
    advice = made_of_tables().advice.tables
    assert advice
    show(browser, tables)
    assert shown_rate(browser) != browser.execute_script("return tierwise.placements.at(0).rate")
    none = switch(browser, "#table-none input")
    assert none.is_selected()
    none.send_keys(Keys.ARROW_DOWN)
    chosen = browser.execute_script("return tierwise.data.choices[tierwise.state.tables]")
    assert chosen["device"] == advice.devices[0].device
    attribute = browser.find_element("id", "said").get_attribute("textContent")
    assert attribute.startswith(f"{chosen['title']} on {chosen['device']}: ") and "a month" in attribute
    switch(browser, "#table-device").send_keys(Keys.ARROW_DOWN)
    other = browser.execute_script("return tierwise.data.choices[tierwise.state.tables]")
    assert other["device"] == advice.devices[1].device and other["rows"] == chosen["rows"]
    visible = [
        element
        for element in browser.find_elements("css selector", "#table-sets tbody tr")
        if element.is_displayed()
    ]
    assert {element.find_elements("css selector", "td")[0].text for element in visible} == {other["device"]}


def test_a_set_that_was_not_simulated_has_no_answer(browser: Any, tables: Path) -> None:
    show(browser, tables)
    sets = browser.execute_script("return tierwise.data.choices.filter(one => one.rows).length")
    assert len(browser.find_elements("css selector", "#table-sets input")) == sets
    assert not browser.find_elements("css selector", "#table-rows input, #table-rows button")
    for fragment in ("#tables=999", "#tables=x", "#tables=0"):
        show(browser, tables, fragment=fragment)
        assert browser.execute_script("return tierwise.state.tables") is None, fragment


def test_a_setting_is_shown_with_the_placements_it_was_simulated_with(browser: Any, page: Path) -> None:
    (off, delay) = made().advice.settings
    assert off.with_move and off.with_move.rate_per_s and off.prediction.rate_per_s
    show(browser, page)
    advised = tile(browser, "rate")
    box = switch(browser, "#switches input")
    box.send_keys(Keys.SPACE)
    assert box.is_selected() and tile(browser, "rate") != advised
    assert shown_rate(browser) == pytest.approx(off.with_move.rate_per_s.value, rel=1e-3)
    assert off.loses in browser.find_element("id", "note").text
    assert f"{off.setting} may lose commits" in browser.find_element("id", "tile-power").text
    assert browser.find_element("id", "command").text.endswith(f"--set {off.setting}")
    link = browser.current_url
    card(browser, "log").send_keys(Keys.ARROW_RIGHT)
    assert tile(browser, "rate") == "–" and "not simulated" in browser.find_element("id", "note").text
    assert "not simulated" in browser.find_element("id", "said").get_attribute("textContent")
    browser.find_element("id", "as-recorded").click()
    assert shown_rate(browser) == pytest.approx(off.prediction.rate_per_s.value, rel=1e-3)
    label = switch(browser, "#switches .switch:last-child label")
    label.click()
    assert tile(browser, "rate") == "–", f"{off.setting} and {delay.setting} were not simulated together"
    box.send_keys(Keys.SPACE)
    assert delay.prediction.rate_per_s
    assert shown_rate(browser) == pytest.approx(delay.prediction.rate_per_s.value, rel=1e-3)
    show(browser, page, fragment="#" + link.partition("#")[2])
    assert shown_rate(browser) == pytest.approx(off.with_move.rate_per_s.value, rel=1e-3)
    show(browser, page, fragment="#set=no_such_setting")
    assert tile(browser, "rate") == advised


def test_names_from_strangers_are_text(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "advice.html"
    file.write_text(advice_page(made(HOSTILE, engine_version=HOSTILE, engine="../postgres")), "utf-8")
    show(browser, file)
    assert HOSTILE in browser.find_element("css selector", ".eyebrow").text
    assert browser.find_elements("css selector", "img") == []
    assert browser.execute_script("return tierwise.data.recording.name") == Path(HOSTILE).name
    command = browser.find_element("id", "command").text
    assert command.startswith(f"tierwise predict '{HOSTILE}' --place ")


def test_a_server_shows_its_own_figures_until_the_placement_changes(browser: Any, page: Path) -> None:
    show(browser, page)
    browser.execute_script("window.heard = []; tierwise.explorer.onchange(one => heard.push(one))")
    browser.execute_script(
        "tierwise.explorer.show({rate: 4321, rate_low: 4000, rate_high: 5000, note: 'asked'})"
    )
    assert tile(browser, "rate") == "4\u202f320" and "asked" in browser.find_element("id", "note").text
    card(browser, "log").send_keys(Keys.ARROW_LEFT)
    assert tile(browser, "rate") != "4\u202f320"
    assert browser.execute_script("return heard") == [placement(browser)]
