"""A real browser for tests of pages, and the parts of the advice page that people touch."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
wait = pytest.importorskip("selenium.webdriver.support.wait")
DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
needs_browser = pytest.mark.skipif(
    not (DRIVER and BROWSER), reason="needs Debian's packages chromium and chromium-driver"
)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium that keeps the messages of its console. It leaves directories; they are removed."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--hide-scrollbars")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(prefix="tierwise-browser-", ignore_cleanup_errors=True) as place:
        service = webdriver.ChromeService(DRIVER, env={**os.environ, "TMPDIR": place})
        driver = webdriver.Chrome(options=options, service=service)
        try:
            yield driver
        finally:
            driver.quit()


def until(browser: Any, condition: str) -> Any:
    """Wait until an expression is true in the page."""
    return wait.WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(f"return {condition}"))


def show(browser: Any, page: Path, width_px: int = 1280, dark: bool = False, fragment: str = "") -> None:
    """Open an advice page and wait for its chart."""
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    metrics = {"width": width_px, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get("about:blank")
    browser.get(page.as_uri() + fragment)
    until(browser, "document.getElementById('chart').dataset.drawn")


def placement(browser: Any) -> dict[str, str]:
    """The placement that the explorer shows."""
    measured: dict[str, str] = browser.execute_script("return tierwise.explorer.placement()")
    return measured


def tile(browser: Any, name: str) -> str:
    """A figure of the shown placement: rate, p50, p99, cost, …"""
    return str(browser.find_element("css selector", f"#tile-{name} .value").text)


def card(browser: Any, role: str) -> Any:
    """The card of a role."""
    return browser.find_element("css selector", f"[data-role={role}]")


def column(browser: Any, device: int) -> Any:
    """The column of a device, scrolled into view; 0 is where the files are."""
    element = browser.find_element("css selector", f"[data-device='{device}']")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    return element


def show_file(browser: Any, page: Path, width_px: int, dark: bool = False) -> None:
    """Open a page that has no chart to wait for."""
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width_px, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(page.as_uri())


def overflow_px(browser: Any) -> int:
    root = "document.documentElement"
    return int(browser.execute_script(f"return {root}.scrollWidth - {root}.clientWidth"))
