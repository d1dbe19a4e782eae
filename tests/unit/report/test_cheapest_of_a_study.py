"""Of placements of a study that cannot be told apart, the cheapest is advised, by the rule of ``advise``."""

from __future__ import annotations

import pytest

from support.results_factory import INFO, study_runs
from tierwise.lab.analysis.placement_rows import first_placement_of
from tierwise.lab.analysis.study_answer import PlacementComparison, build_study_answer
from tierwise.lab.report.study.study_document import study_answer_document
from tierwise.model.placement import Role, price_order, recommended_placement
from tierwise.report.document import Text
from tierwise.results import RunResult

ROLES = (Role.LOG, Role.DATA, Role.INDEX, Role.TEMP)


def placed(run: RunResult, name: str, profile: str, kind: str, roles: tuple[Role, ...]) -> RunResult:
    """The run as one of another placement: some roles on a new device, the others as in the baseline."""
    new = run.devices[0].model_copy(
        update={"name": name, "kind": kind, "profile": profile or None, "path": None, "roles": list(roles)}
    )
    devices = [device for device in run.devices if device.name != "ssd" and set(device.roles) - set(roles)]
    rest = dict.fromkeys(set(ROLES) - set(roles), "hdd")
    return run.model_copy(
        update={
            "placement": name,
            "role_devices": {**rest, **dict.fromkeys(roles, name)},
            "devices": [*devices, new],
        }
    )


def compared(
    engine: str,
    nvme_s: float,
    profile: str = "ssd-nvme-dc",
    kind: str = "ssd",
    roles: tuple[Role, ...] = (Role.LOG,),
) -> PlacementComparison:
    """The log on a DRAM box of 2001, and some roles on another device; ``nvme_s`` is its time."""
    runs = study_runs(["all-hdd", "log-ssd", "all-ssd"], {"log-ssd": 5.31, "all-ssd": nvme_s})
    changed = [
        placed(run, "new", profile, kind, roles) if run.placement == "all-ssd" else run for run in runs
    ]
    changed = [
        run.model_copy(update={"engine": run.engine.model_copy(update={"name": engine})}) for run in changed
    ]
    (comparison,) = build_study_answer(changed, INFO).comparisons
    return comparison


@pytest.mark.parametrize("engine", ["postgres", "mariadb", "rocksdb"])
@pytest.mark.parametrize("nvme_s", [5.2, 5.31, 5.45])
def test_an_nvme_for_less_goes_before_a_dram_box_that_cannot_be_told_from_it(
    engine: str, nvme_s: float
) -> None:
    comparison = compared(engine, nvme_s)
    assert comparison.first == "new" and comparison.alike == ["log-ssd"]
    assert comparison.words.advice.startswith("Move the log to an NVMe SSD (ssd-nvme-dc) first")
    price = comparison.words.price.replace("\u00a0", " ")
    assert "which cannot be told from it, 4" in price and "$" in price
    assert comparison.words.price in comparison.words.headline


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_dear_device_that_is_surely_faster_is_still_first(engine: str) -> None:
    comparison = compared(engine, 11.0)
    assert comparison.first == "log-ssd" and comparison.alike == [] and comparison.words.price == ""


def test_others_that_cannot_be_told_apart_are_listed_by_their_price() -> None:
    row = next(row for row in compared("postgres", 5.31).rows if row.placement == "new")
    rows = [
        row.model_copy(
            update={"summary": row.summary.model_copy(update={"placement": name}), "new_per_month": cost}
        )
        for name, cost in (("dear", 30.0), ("middle", 20.0), ("cheap", 10.0))
    ]
    first = first_placement_of(rows, lambda _of, _over: None)
    assert first.row and first.row.placement == "cheap"
    assert [row.placement for row in first.alike] == ["middle", "dear"]


def test_what_has_no_price_is_not_taken_for_cheaper() -> None:
    """A directory of the user's own: nobody knows what it costs."""
    assert compared("postgres", 5.2, profile="", kind="real").first == "new"
    assert compared("postgres", 5.45, profile="", kind="real").first == "log-ssd"


def test_memory_comes_after_what_keeps_its_files_however_cheap() -> None:
    assert compared("postgres", 5.31, profile="ram", kind="ram").first == "log-ssd"


def test_moving_more_files_is_no_better_for_the_same_money() -> None:
    comparison = compared("postgres", 5.2, profile="ssd-dram-fc", roles=ROLES)
    assert comparison.first == "log-ssd"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_only_the_lab_can_part_is_said(engine: str) -> None:
    caveats = " ".join(compared(engine, 5.2).words.caveats)
    assert ("move together: SQLite keeps its -wal" in caveats) == (engine == "sqlite")


def test_the_document_has_the_price_below_the_advice() -> None:
    runs = study_runs(["all-hdd", "log-ssd", "all-ssd"], {"all-ssd": 5.2})
    changed = [
        placed(run, "new", "ssd-nvme-dc", "ssd", (Role.LOG,)) if run.placement == "all-ssd" else run
        for run in runs
    ]
    answer = build_study_answer(changed, INFO)
    texts = [block.text for block in study_answer_document(answer) if isinstance(block, Text)]
    (comparison,) = answer.comparisons
    assert texts.index(comparison.words.price) == texts.index(comparison.words.advice) + 1


def test_the_rule_asks_no_more_than_it_needs() -> None:
    asked: list[int] = []

    def alike(number: int) -> bool:
        asked.append(number)
        return number >= 2

    assert recommended_placement(iter([1, 2, 3, 4]), alike) == 2 and asked == [1, 2]
    assert recommended_placement([], alike) is None
    cheap, dear, unknown, memory = (
        price_order(1.0, 3, 1, 1.0), price_order(9.0, 1, 1, 9.0), price_order(None, 1, 1, 9.0),
        price_order(0.0, 1, 1, 9.0, in_memory=True),
    )  # fmt: skip
    assert sorted([memory, unknown, dear, cheap]) == [cheap, dear, unknown, memory]
    fewest, few, most = (
        price_order(1.0, 1, 1, 1.0),
        price_order(1.0, 2, 1, 1.0),
        price_order(1.0, 2, 2, 9.0),
    )
    assert price_order(1.0, 1, 1, 9.0) < fewest < few < most
