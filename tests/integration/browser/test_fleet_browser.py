"""The page of a fleet in a browser: it opens offline, fits every width, and asks nothing of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.browsers import needs_browser, overflow_px, show_file
from support.fleet_factory import advised, database, option
from tierwise.model.placement import Role
from tierwise.report.fleet_report import fleet_page
from tierwise.report.render import to_html_page

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("scipy.optimize", reason="scipy of the extra cluster is not installed")
    options = (option(30, 2.0, spread=1.3), option(160, 3.0, [Role.LOG, Role.DATA], spread=1.3))
    fleet = [database(f"a-database-with-a-long-name-{number}", *options) for number in range(12)]
    file = tmp_path_factory.mktemp("fleet") / "fleet.html"
    file.write_text(to_html_page(fleet_page(advised(*fleet, budget="900/month"))), "utf-8")
    return file


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width_px", [400, 1280, 3840])
def test_the_page_opens_at_the_advice_and_fits(browser: Any, page: Path, width_px: int, dark: bool) -> None:
    show_file(browser, page, width_px, dark)
    text = browser.find_element("css selector", "h1").text.replace("\u2060", "")
    assert text.startswith("Move the logs of 12 databases and the data of 4")
    shown = [
        element for element in browser.find_elements("css selector", "#budget svg") if element.is_displayed()
    ]
    assert len(shown) == 1
    assert overflow_px(browser) == 0
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
