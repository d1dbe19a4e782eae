"""Findings of papers as tests of direction: each kind of check passes, fails and stays open when it must."""

from __future__ import annotations

import tomllib

import pytest
from paper_findings import (
    Check,
    Finding,
    Outcome,
    Point,
    PredictedPaper,
    judge,
    predicted_to_markdown,
    to_markdown,
)

from support.lap_results import lap_runs, sweep_runs
from support.paths import ROOT
from tierwise.lab import studies as study
from tierwise.predict import Estimate, Scenario
from tierwise.results import RunResult

SPEC = tomllib.loads((ROOT / "benchmarks" / "findings.toml").read_text("utf-8"))
PAPERS = tomllib.loads((ROOT / "benchmarks" / "papers.toml").read_text("utf-8"))
FINDINGS = [Finding.model_validate(finding) for finding in SPEC["findings"]]


def point(placement: str, lap: str | None = None) -> Point:
    return Point(study="bahrain", placement=placement, lap=lap)


def outcome_of(kind: str, points: list[Point], runs: list[RunResult] | None = None) -> Outcome:
    check = Check.model_validate({"what": "x", "kind": kind, "points": points})
    finding = Finding(name="n", paper="p", checks=[check])
    return judge(finding, {"bahrain": lap_runs() if runs is None else runs}).outcome


DELETE = [point(name, "delete") for name in ("all-hdd", "log-ssd", "all-ssd")]
HDD, LOG, ALL = (point(name, "write") for name in ("all-hdd", "log-ssd", "all-ssd"))
READ_HDD, READ_SSD = point("all-hdd", "query string"), point("all-ssd", "query string")


@pytest.mark.parametrize(
    ("kind", "points", "outcome"),
    [
        ("faster", [HDD, LOG], Outcome.PASS),
        ("faster", [LOG, HDD], Outcome.FAIL),
        ("faster", [point("all-hdd"), point("all-ssd")], Outcome.PASS),
        ("alike", [READ_HDD, READ_SSD], Outcome.PASS),
        ("alike", [HDD, LOG], Outcome.FAIL),
        ("most", [HDD, LOG, ALL], Outcome.PASS),
        (
            "most",
            DELETE,
            Outcome.FAIL,
        ),
        ("more", [HDD, ALL, READ_HDD, READ_SSD], Outcome.PASS),
        ("more", [READ_HDD, READ_SSD, HDD, ALL], Outcome.FAIL),
        ("faster", [point("all-hdd", "no such lap"), LOG], Outcome.OPEN),
    ],
)
def test_direction_decides(kind: str, points: list[Point], outcome: Outcome) -> None:
    assert outcome_of(kind, points) is outcome


def test_too_few_repeats_and_caps_leave_it_open() -> None:
    assert outcome_of("faster", [HDD, LOG], lap_runs(repeats=2)) is Outcome.OPEN
    capped = lap_runs(cap_s=1.0)
    assert outcome_of("faster", [HDD, LOG], capped) is Outcome.PASS, "a lower bound above 1 is enough"
    assert outcome_of("faster", [LOG, HDD], capped) is Outcome.OPEN
    assert outcome_of("alike", [HDD, LOG], capped) is Outcome.OPEN


def test_ends_of_a_sweep_can_be_named() -> None:
    points = [
        Point(study="bahrain", placement="all-hdd", lap="update", setting={"memory": end})
        for end in ("least", "most")
    ]
    assert outcome_of("faster", points, sweep_runs({"256M": 0.7, "64M": 1.4, "1G": 0.5})) is Outcome.PASS
    assert outcome_of("faster", points[::-1], sweep_runs({"64M": 1.4, "1G": 0.5})) is Outcome.FAIL


def test_page_names_figure_agreement_and_reason() -> None:
    checks = [Check(what="write", kind="faster", points=[LOG, HDD])]
    finding = Finding(name="the other way round", paper="2×", checks=checks, why_not="caches")
    text = to_markdown([judge(finding, {"bahrain": lap_runs()})])
    assert "| the other way round | 2× | write: 0.38× (0.38–0.40) FAIL | – | **no** | caches |" in text
    assert "0 of 1 findings agree" in text


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)
def test_every_finding_names_what_its_studies_have(finding: Finding) -> None:
    for check in finding.checks:
        assert len(check.points) == {"faster": 2, "alike": 2, "most": 3, "more": 4}[check.kind]
        for point in check.points:
            wanted = SPEC["studies"][point.study]
            assert point.placement in wanted["placements"]
            assert set(wanted["placements"]) <= set(
                study.load_study(wanted.get("study", point.study)).placements
            )


def test_what_was_predicted_stands_beside_what_was_found() -> None:
    predicted_paper = PredictedPaper(
        experiment="temp-join",
        finding=FINDINGS[2].name,
        what="temp",
        paper="1.35×",
        machine="estimated",
        ratio=Estimate(value=1.4, low=1.1, high=1.8),
        reproduction_error=0.03,
        warnings=["not validated"],
        why="fewer disks",
    )
    text = to_markdown([judge(FINDINGS[2], {})], [predicted_paper])
    assert "| temp: 1.40× (1.10–1.80) | not decided |" in text
    refused = predicted_paper.model_copy(update={"ratio": None, "refused": "no recording"})
    page = predicted_to_markdown([predicted_paper, refused])
    assert "| temp-join | temp | 1.35× | 1.40× (1.10–1.80) | +3.0% | fewer disks |" in page
    assert "refused: no recording" in page


def test_every_prediction_names_a_finding_and_devices_that_are_there() -> None:
    names = [finding.name for finding in FINDINGS]
    for wanted in PAPERS["predictions"]:
        assert wanted.get("finding", names[0]) in names
        assert wanted["machine"] in PAPERS["machines"]
        for side in ("base", "move"):
            Scenario(placement=wanted[side]["placement"])


def test_the_seven_findings_are_there() -> None:
    assert len(FINDINGS) == 7
