"""Reports of runs of fixed duration, prices of placements, devices named by what they are, plain axes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.html import Page
from support.results_factory import INFO, study_runs
from tierwise.device_models import profiles
from tierwise.lab.analysis.placement_summary import cost_per_month
from tierwise.lab.analysis.results_comparison import compare_results
from tierwise.lab.analysis.study_answer import PlacementComparison, build_study_answer
from tierwise.lab.report.charts.study_charts import study_figures
from tierwise.lab.report.study.study_page import study_answer_page
from tierwise.model.placement import Role
from tierwise.report.charts import PAGE_NARROW, PAGE_WIDE, to_svg
from tierwise.report.render import to_html_page
from tierwise.results import RoleProof, RunResult

SECONDS = 60.0


def of_fixed_duration(run: RunResult) -> RunResult:
    """The same speed, for a minute."""
    assert run.rate_per_s is not None
    return run.model_copy(
        update={"elapsed_s": SECONDS + run.order / 100, "transactions": round(SECONDS * run.rate_per_s)}
    )


def only(runs: list[RunResult]) -> PlacementComparison:
    (comparison,) = build_study_answer(runs, INFO).comparisons
    return comparison


@pytest.mark.usefixtures("drawn")
def test_runs_of_fixed_duration_are_never_faster() -> None:
    answer = build_study_answer([of_fixed_duration(run) for run in study_runs()], INFO)
    text = " ".join(Page(to_html_page(study_answer_page(answer))).text.split())
    assert "faster" not in text and "Times the rate of all-hdd" in text
    assert "gives order entry 7.8 times the rate" in text
    (comparison,) = answer.comparisons
    paper = {row.what: row for row in comparison.paper if row.placement == "log-ssd"}
    assert paper["elapsed"].our_value is None and paper["log wait share"].our_value is not None
    assert max(row.variation or 0 for row in comparison.validity.noise) > 0.01, (
        "the noise is that of the rate"
    )


def test_sets_of_fixed_duration_are_compared_by_rate() -> None:
    rates = [of_fixed_duration(run) for run in study_runs(repeats=3)]
    twice = [
        run.model_copy(
            update={"transactions": 2 * (run.transactions or 0), "rate_per_s": 2 * (run.rate_per_s or 0)}
        )
        for run in rates
    ]
    assert "log-ssd: B does 2.0 times the rate of A" in compare_results(rates, twice, ("a", "b")).headline


def test_one_share_is_one_figure_everywhere() -> None:
    def with_log_share(run: RunResult) -> RunResult:
        assert run.waits is not None
        shares = dict(run.waits.shares)
        moved = 0.02 * run.repeat**2
        for kind, change in (("log_sync", moved), ("cpu", -moved)):
            shares[kind] = shares[kind].model_copy(update={"share": shares[kind].share + change})  # type: ignore[index]
        return run.model_copy(update={"waits": run.waits.model_copy(update={"shares": shares})})

    summary = only([with_log_share(run) for run in study_runs()]).rows[0].summary
    drawn = summary.waits["log_sync"] + summary.waits["log_lock"]
    assert summary.log_wait_share is not None
    assert [summary.log_wait_share.estimate, summary.medians["log wait share"]] == pytest.approx(
        [drawn, drawn]
    )


def test_only_a_profile_that_ships_is_priced_by_its_name(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.toml"
    theirs.write_text((profiles.FOLDER / "ssd-optane.toml").read_text("utf-8"), "utf-8")

    def priced(**update: object) -> float | None:
        run = study_runs(repeats=1)[0]
        devices = [device.model_copy(update={"profile": "ssd-optane", **update}) for device in run.devices]
        return cost_per_month(run.model_copy(update={"devices": devices}))

    assert priced() is not None
    assert [priced(own_profile=True), priced(profile="optane"), priced(profile=str(theirs))] == [None] * 3


def test_each_drive_is_a_purchase_and_rent_follows_the_size() -> None:
    rows = {row.placement: row.cost_per_month for row in only(study_runs(repeats=1)).rows}
    one_disk, one_box = 900 / 60, 24_000 / 60
    assert rows == pytest.approx({"all-hdd": 2 * one_disk, "log-ssd": one_disk + one_box, "all-ssd": one_box})

    def rented(run: RunResult, log_bytes: int) -> RunResult:
        proof = {Role.LOG: RoleProof(device="ssd", written_bytes=log_bytes, files=1)}
        devices = [d.model_copy(update={"profile": "volume-aws-gp3"}) for d in run.devices]
        return run.model_copy(update={"devices": devices, "proof": proof})

    small, large = (only([rented(run, size) for run in study_runs(repeats=1)]) for size in (1 << 30, 1 << 40))
    assert (small.rows[1].cost_per_month or 0) < (large.rows[1].cost_per_month or 0)


def test_a_device_without_a_price_leaves_the_cost_open() -> None:
    def real(run: RunResult) -> RunResult:
        own = {"kind": "real", "profile": None, "path": "/srv/own", "deadline_overrun": None}
        return run.model_copy(update={"devices": [d.model_copy(update=own) for d in run.devices]})

    comparison = only([real(run) for run in study_runs(repeats=1)])
    assert [row.cost_per_month for row in comparison.rows] == [None, None, None]


def test_two_devices_for_one_role_are_told_apart() -> None:
    def on_nvme(run: RunResult) -> RunResult:
        if run.placement != "all-ssd":
            return run
        roles = dict.fromkeys(run.role_devices, "hdd") | {Role.LOG: "nvme"}
        nvme = run.devices[0].model_copy(update={"name": "nvme", "kind": "ssd", "profile": "ssd-nvme-dc"})
        return run.model_copy(update={"placement": "log-nvme", "role_devices": roles, "devices": [nvme]})

    words = only([on_nvme(run) for run in study_runs()]).words
    assert words.finding.startswith("Moving the log to an NVMe SSD (ssd-nvme-dc) makes")
    assert words.others.startswith("Moving the log to a DRAM SSD (ssd-dram-fc) makes")
    assert words.advice == "Move the log to an NVMe SSD (ssd-nvme-dc) first."


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("look", [PAGE_WIDE, PAGE_NARROW], ids=["wide", "narrow"])
def test_axes_have_plain_numbers(look: Any) -> None:
    def busier(run: RunResult) -> RunResult:
        io = {
            role: role_io.model_copy(update={"writes": 400 * role_io.writes + 7})
            for role, role_io in run.io.items()
        }
        return run.model_copy(update={"io": io})

    figures = study_figures(only([busier(run) for run in study_runs(repeats=1)]))
    labels = [
        text
        for figure in figures.values()
        for text in re.findall(r">([^<>]+)<", to_svg(figure.draw(look), "x", "d"))
    ]
    assert not [label for label in labels if re.fullmatch(r"[\d.]+(e[+-]?\d+|[kMGµm])", label)]
    assert [label for label in labels if re.fullmatch(r"[\d\u202f]+\u202f000", label)]
