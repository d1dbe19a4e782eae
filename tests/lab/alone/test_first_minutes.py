"""A newcomer's first two minutes: record a database beside its load, then ask what to move."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browsers import BROWSER, DRIVER, card, chromium, column, placement, show, tile, webdriver
from support.engine_contract import open_directory, places_in
from tierwise import _core
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine

pytestmark = [
    pytest.mark.skipif(_core.recording_impossible() is not None, reason="nothing can be recorded here"),
]

LOAD_S = 26
RECORDED_S = 20


@pytest.fixture
def postgres() -> Iterator[PostgresEngine]:
    with open_directory() as directory, PostgresEngine("postgres", embedded_postgres(), {}) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        yield made


def tierwise(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tierwise", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_database_on_the_machines_own_disk_gets_an_answer(postgres: PostgresEngine, tmp_path: Path) -> None:
    pgbench = [str(embedded_postgres().bin / "pgbench"), "-n", postgres.dsn()]
    subprocess.run([*pgbench, "-i", "-q", "-s", "5"], capture_output=True, check=True)
    load = [*pgbench, "-N", "-M", "prepared", "-c", "4", "-j", "2", "-T", str(LOAD_S)]
    with subprocess.Popen(load, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        recorded = tierwise(
            "record", "-o", tmp_path / "now", "--pid", str(postgres.server_pid), "--duration", RECORDED_S
        )
        told, _ = running.communicate()
    assert recorded.returncode == 0, recorded.stderr
    assert "usable" in recorded.stdout
    measured = next(float(line.split()[2]) for line in told.splitlines() if line.startswith("tps"))

    predicted = tierwise("predict", tmp_path / "now", "--place", "all=hdd-7k2", "--format", "json")
    assert predicted.returncode == 0, predicted.stderr
    answers = json.loads(predicted.stdout)
    assert answers["recorded"]["rate_per_s"] == pytest.approx(measured, rel=0.3)
    slow = answers["predictions"][0]
    assert slow["refused"] is None
    # Four clients commit to a disk of 120 revolutions a second:
    # at most that many flushes, each of at most four commits.
    assert 60 < slow["rate_per_s"]["value"] < 4 * 120

    page = tmp_path / "advice.html"
    advised = tierwise("advise", tmp_path / "now", "--devices", "nvme-dc,hdd-7k2", "-o", page)
    assert advised.returncode == 0, advised.stderr
    assert "log" in advised.stdout
    if BROWSER and DRIVER:
        read_the_price_of_a_dragged_log(page)


def read_the_price_of_a_dragged_log(page: Path) -> None:
    with chromium() as browser:
        show(browser, page)
        for device, name in ((2, "hdd-7k2"), (1, "ssd-nvme-dc")):
            to = column(browser, device)
            webdriver.ActionChains(browser).drag_and_drop(card(browser, "log"), to).perform()
            assert placement(browser)["log"] == name
            assert float(tile(browser, "cost").split()[0].replace("\u202f", "")) > 0
