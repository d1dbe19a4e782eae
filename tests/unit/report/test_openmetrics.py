"""A profile as OpenMetrics: read by Prometheus' own parser, and drawn by the dashboard that ships."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.fake_replay import predictor
from support.paths import RECORDINGS, ROOT
from support.recording_factory import write_recording
from tierwise.cli import app
from tierwise.model.placement import Role
from tierwise.predict.time_savings import TimeSavings, time_savings_by_role
from tierwise.recording.breakdown import Breakdown, break_down
from tierwise.report.recording.openmetrics import FAMILIES, openmetrics_text

DASHBOARD = ROOT / "docs" / "how-to" / "grafana-dashboard.json"
EVIL = 'a\\"\n# EOF\n{x="1"} 7'
RUNNER = CliRunner()


def parsed(text: str) -> dict[str, Any]:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="make env installs it")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


@pytest.fixture(scope="module")
def breakdown(tmp_path_factory: pytest.TempPathFactory) -> Breakdown:
    return break_down(write_recording(tmp_path_factory.mktemp("metrics") / "rec"))


def metrics(breakdown: Breakdown, name: str = "rec") -> str:
    saved = time_savings_by_role(predictor(), [Role.LOG, Role.DATA])
    return openmetrics_text(breakdown, saved, {"recording": name}, 123.5, "2026-11-21T12:00:00Z")


def test_every_family_is_emitted_with_its_unit_and_read_back(breakdown: Breakdown) -> None:
    families = parsed(metrics(breakdown))
    assert {name: family.unit for name, family in families.items()} == {
        family.name: family.unit for family in FAMILIES
    }
    assert all(family.type == "gauge" and family.documentation for family in families.values())
    time = {
        (sample.labels["class"], sample.labels["part"], sample.labels["role"]): sample.value
        for sample in families["tierwise_time_share_ratio"].samples
    }
    assert time["session", "log_device", "log"] == pytest.approx(0.8)
    assert time["session", "cpu", "none"] == pytest.approx(0.2)
    bounds = {
        sample.labels["role"]: sample.value for sample in families["tierwise_saving_bound_ratio"].samples
    }
    assert list(bounds) == ["log", "data", "all"]
    assert families["tierwise_recording_start_seconds"].samples[0].value == 1795262400


def test_a_value_that_is_not_known_has_no_sample(breakdown: Breakdown) -> None:
    text = openmetrics_text(breakdown, TimeSavings(refused="too short"), {}, None, "yesterday")
    assert set(parsed(text)) == {"tierwise_time_share_ratio", "tierwise_cpu_busy_ratio"}


def test_a_hostile_name_is_the_value_of_its_label_alone(breakdown: Breakdown) -> None:
    families = parsed(metrics(breakdown, EVIL))
    assert set(families) == {family.name for family in FAMILIES}
    names = {sample.labels["recording"] for family in families.values() for sample in family.samples}
    assert names == {EVIL.replace("\n", "?")}


@pytest.mark.parametrize("name", ["order-entry", "small-objects"])
def test_the_command_prints_metrics_of_a_recording(name: str) -> None:
    ran = RUNNER.invoke(app, ["profile", str(RECORDINGS / name), "--format", "openmetrics"])
    assert ran.exit_code == 0
    families = parsed(ran.stdout)
    assert {sample.labels["recording"] for family in families.values() for sample in family.samples} == {name}
    assert families["tierwise_rate_transactions_per_second"].samples[0].value > 0


def test_metrics_of_a_day_are_those_of_its_latest_recording(tmp_path: Path) -> None:
    for name, hour in (("first", 9), ("last", 12), ("second", 10)):
        shutil.copytree(RECORDINGS / "order-entry", tmp_path / "day" / name)
        about = tmp_path / "day" / name / "about.json"
        content = json.loads(about.read_text("utf-8")) | {"started_at": f"2026-11-23T{hour:02}:00:00Z"}
        about.write_text(json.dumps(content), "utf-8")
    asked = ["profile", str(tmp_path / "day"), "--format", "openmetrics", "--no-savings"]
    ran = RUNNER.invoke(app, asked)
    assert 'recording="last"' in ran.stdout and 'recording="first"' not in ran.stdout
    assert "latest recording" in ran.stderr


def test_the_dashboard_draws_metrics_that_are_emitted() -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = dashboard["templating"]["list"]
    asked = [variable["query"]["query"] for variable in variables if variable["type"] == "query"]
    emitted = {family.name for family in FAMILIES}
    for query in [*queries, *asked]:
        names = re.findall(r"\btierwise_\w+", query)
        assert names and set(names) <= emitted, query
    assert {name for query in queries for name in re.findall(r"\btierwise_\w+", query)} == emitted
    known = {variable["name"] for variable in variables}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"]))) <= known


def test_the_dashboard_s_panels_have_numbers_places_and_descriptions() -> None:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= 24
        assert panel["description"] and panel["title"]
        taken |= cells
