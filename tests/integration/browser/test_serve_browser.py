"""The live page in a real browser: figures follow a slider that is dragged, and a card that is moved."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support.browsers import needs_browser, overflow_px, wait
from support.live_server import RECORDING, LiveServer, live_server

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
pytestmark = needs_browser

KNOB_PX = 16
"""Width of a slider's knob, whose middle is at the value."""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(str(RECORDING), "--devices", "nvme-dc") as started:
        yield started


def open_page(browser: Any, server: LiveServer, query: str = "", width_px: int = 1280) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width_px, "height": 1200, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(f"{server.url}1/{query}")
    until(browser, lambda: browser.find_element("id", "live").is_displayed())


def until(browser: Any, true: Any) -> None:
    wait.WebDriverWait(browser, 60).until(lambda _: true())


def text(browser: Any, selector: str) -> str:
    return str(browser.find_element("css selector", selector).text)


def rate(browser: Any) -> float:
    return float(re.sub(r"[^\d.]", "", text(browser, "#tile-rate .value")))


def agreed(browser: Any) -> bool:
    return "agree" in text(browser, "#live-status")


def mouse(browser: Any, kind: str, at: list[float], held: bool) -> None:
    """An event of the mouse; chromedriver's own actions forget between two calls that a button is held."""
    button = {"button": "left", "buttons": int(held), "clickCount": 1}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": at[0], "y": at[1], **button})


def test_figures_follow_a_dragged_slider(browser: Any, server: LiveServer) -> None:
    open_page(browser, server)
    slider = browser.find_element("id", "live-rate_per_s")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", slider)
    where = "const box = arguments[0].getBoundingClientRect(); return [box.x, box.y + box.height / 2]"
    x, y = browser.execute_script(where, slider)
    x += KNOB_PX / 2
    step_px = (slider.size["width"] - KNOB_PX) / int(slider.get_attribute("max"))
    seen = [rate(browser)]
    mouse(browser, "mousePressed", [x, y], True)
    for steps in range(2, 12, 2):
        mouse(browser, "mouseMoved", [x + steps * step_px, y], True)
        until(browser, lambda: rate(browser) not in seen)
        seen.append(rate(browser))
    mouse(browser, "mouseReleased", [x + 10 * step_px, y], False)
    until(browser, lambda: agreed(browser))
    arriving = float(browser.current_url.partition("?rate_per_s=")[2])
    assert rate(browser) == pytest.approx(arriving, rel=0.05)
    assert text(browser, "#command").endswith(f"--rate {arriving:g}")
    assert browser.get_log("browser") == []


def test_a_link_restores_the_sliders_and_a_move_keeps_them(browser: Any, server: LiveServer) -> None:
    open_page(browser, server, "?clients=4&cores=8&growth=nonsense#log=recorded")
    until(browser, lambda: agreed(browser))
    assert browser.find_element("id", "live-clients").get_attribute("aria-valuetext") == "4"
    slow = rate(browser)
    browser.find_element("css selector", "#reset").click()  # as advised: the log on the fast device
    until(browser, lambda: rate(browser) > 3 * slow and agreed(browser))
    assert "clients=4" in browser.current_url and "log=ssd-nvme-dc" in browser.current_url
    browser.find_element("id", "live-reset").click()
    until(browser, lambda: agreed(browser))
    assert "?" not in browser.current_url


def test_a_setting_is_asked_of_the_server_with_any_placement(browser: Any, server: LiveServer) -> None:
    open_page(browser, server, "#log=recorded&data=ssd-nvme-dc")
    plain = rate(browser)
    browser.find_element("css selector", "#switches input").click()
    until(browser, lambda: agreed(browser))
    assert rate(browser) > 1.5 * plain, "it was not simulated for the page"
    assert "not simulated" not in text(browser, "#note")
    browser.get("about:blank")
    open_page(browser, server, "#log=recorded&data=ssd-nvme-dc&set=synchronous_commit%3Doff")
    until(browser, lambda: agreed(browser))
    assert rate(browser) > 1.5 * plain, "a link asks again"


def test_what_cannot_be_answered_is_said(browser: Any, server: LiveServer) -> None:
    open_page(browser, server)
    script = "tierwise.data.live.sliders[0].stops.push(99999)"
    browser.execute_script(script)
    slider = browser.find_element("id", "live-clients")
    browser.execute_script(
        "arguments[0].max = tierwise.data.live.sliders[0].stops.length - 1;"
        "arguments[0].value = arguments[0].max;"
        "arguments[0].dispatchEvent(new Event('input'))",
        slider,
    )
    until(browser, lambda: "live page" in text(browser, "#live-status"))
    browser.get_log("browser")  # Chromium logs the status 422


@pytest.mark.parametrize("width_px", [400, 1280])
def test_nothing_sticks_out_and_only_its_own_server_is_asked(
    browser: Any, server: LiveServer, width_px: int
) -> None:
    open_page(browser, server, "?clients=4", width_px)
    until(browser, lambda: agreed(browser))
    assert overflow_px(browser) == 0
    names = browser.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert {name.split("?")[0] for name in names} <= {
        f"{server.url}1/ask",
        f"http://{server.host}/favicon.ico",
    }
    blocked = "return fetch('http://127.0.0.1:9/').then(() => false, () => true)"
    assert browser.execute_script(blocked)
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The same recording with the name of an index."""
    recording = tmp_path_factory.mktemp("named") / "recording"
    shutil.copytree(RECORDING, recording)
    about = json.loads((recording / "about.json").read_text())
    path = "PG_18_202506291/5/16426"
    about["relations"] = [
        {"path": path, "name": "public.orders_pkey", "kind": "index", "size_bytes": 1 << 20}
    ]
    (recording / "about.json").write_text(json.dumps(about))
    with live_server(str(recording), "--devices", "nvme-dc") as started:
        yield started


def test_tables_are_listed_and_no_choice(browser: Any, named: LiveServer) -> None:
    open_page(browser, named, "?clients=4#tables=0")
    until(browser, lambda: agreed(browser))
    rows = browser.find_elements("css selector", "#table-sets tbody tr")
    assert rows and all(row.is_displayed() for row in rows)
    assert "public.orders_pkey" in text(browser, "#table-rows")
    assert "sliders do not change it" in text(browser, "#tables")
    assert browser.find_elements("css selector", "#tables input, #table-none") == []
    assert text(browser, "#command").endswith("--clients 4"), "a set of tables in the address is ignored"
    assert overflow_px(browser) <= 0
    assert browser.get_log("browser") == []
