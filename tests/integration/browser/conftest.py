"""One Chromium for all tests of pages; each test has a tab of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.browsers import chromium


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """The browser, with an empty tab that stays."""
    with chromium() as started:
        yield started


@pytest.fixture
def browser(driver: Any) -> Iterator[Any]:
    """The browser in a new tab."""
    kept = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get_log("browser")
    yield driver
    driver.close()
    driver.switch_to.window(kept)
