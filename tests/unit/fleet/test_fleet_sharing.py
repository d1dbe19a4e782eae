"""Logs of a fleet on shared devices: packing, limits, money, and the command on the shipped recordings."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from support.fleet_factory import EXAMPLES, GP3, NVME, advised, database, option, recorded
from support.schemas import problems
from tierwise.advise import PaymentTerms
from tierwise.advise.priced_placement import GoalVerdict
from tierwise.cli import app
from tierwise.fleet.database_options import FleetOption, NewLogDevice
from tierwise.fleet.fleet_databases import DatabaseWeight, FleetWeights
from tierwise.fleet.packing import MOST_TRIES, SharingLimits, advice_with_shared_logs
from tierwise.fleet.records import FleetAdvice, FleetDatabase, SharedDatabase
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import Estimate
from tierwise.report.fleet_report import fleet_answer_texts, sharing_blocks
from tierwise.report.render import to_markdown

pytest.importorskip("scipy", reason="scipy of the extra cluster is not installed")
GIB = 1 << 30
NVME_COST = 10.0  # 600 $ over five years
Members = Sequence[tuple[FleetDatabase, FleetOption]]


def logged(
    busy_share: float,
    *,
    device: str = NVME,
    cost: float = NVME_COST,
    speedup: float = 3.0,
    size_bytes: int = GIB,
    verdict: GoalVerdict | None = None,
    obstacle: str | None = None,
) -> FleetOption:
    """An option that moves the log to a device of its own."""
    load = NewLogDevice(
        device=device,
        roles=[Role.LOG],
        size_bytes=size_bytes,
        busy_share=busy_share,
        written_bytes_per_s=0.0,
        obstacle=obstacle,
    )
    return option(cost, speedup, device=device, verdict=verdict).model_copy(update={"log_device": load})


def exact(value: float) -> Estimate:
    return Estimate(value=value, low=value, high=value)


class OneServer:
    """A device that serves all it is asked for up to one second of work in a second, then a share of it."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, members: Members) -> list[SharedDatabase]:
        self.asked.append([member.name for member, _ in members])
        return [
            SharedDatabase(
                database=member.name,
                roles=[Role.LOG],
                unit="transactions",
                rate_alone_per_s=exact(100 * chosen.speedup.value),
                rate_per_s=exact(100 * chosen.speedup.value * kept_of(members)),
                kept=exact(kept_of(members)),
                p99_alone_us=exact(1000),
                p99_us=exact(1000 * len(members)),
            )
            for member, chosen in members
        ]


def kept_of(members: Members) -> float:
    busy = sum(member.log_device.busy_share for _, member in members if member.log_device)
    return min(1.0, 1 / busy) if busy else 1.0


def shared(advice: FleetAdvice, least_kept: float = 0.9, most: int = 4) -> tuple[FleetAdvice, OneServer]:
    server = OneServer()
    return advice_with_shared_logs(advice, PaymentTerms(), server, SharingLimits(least_kept, most)), server


def packs(advice: FleetAdvice) -> list[list[str]]:
    assert advice.sharing
    return [sorted(log.database for log in device.databases) for device in advice.sharing.devices]


def partitions(names: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every partition of a set."""
    if not names:
        yield []
        return
    for smaller in partitions(names[1:]):
        yield [[names[0]], *smaller]
        for number, part in enumerate(smaller):
            yield [*smaller[:number], [names[0], *part], *smaller[number + 1 :]]


def test_packs_keep_the_limit_and_are_few() -> None:
    """Against every partition; first fit decreasing needs 11/9 of the least number and a little at most."""
    rng, best = random.Random(7), 0
    for _ in range(20):
        busy = [rng.uniform(0.05, 0.9) for _ in range(rng.randint(2, 6))]
        fleet = [database(f"db{number}", logged(share)) for number, share in enumerate(busy)]
        advice, server = shared(advised(*fleet), least_kept=1.0, most=6)
        assert advice.sharing
        packed = packs(advice)
        for pack in packed:
            assert sum(busy[int(name[2:])] for name in pack) <= 1
        names = [name for pack in packed for name in pack] + [log.database for log in advice.sharing.separate]
        assert sorted(names) == [f"db{number}" for number in range(len(busy))], "each once"
        used = len(packed) + len(advice.sharing.separate)
        least = min(
            len(parts)
            for parts in partitions(range(len(busy)))
            if all(sum(busy[number] for number in part) <= 1 for part in parts)
        )
        assert least <= used <= 11 / 9 * least + 6 / 9
        assert advice.sharing.saved_per_month == pytest.approx(NVME_COST * (len(busy) - used))
        assert advice.sharing.replays == len(server.asked) <= MOST_TRIES * len(busy)
        best += used == least
    assert best >= 18


def test_a_pack_never_costs_a_database_its_p99_or_its_rate() -> None:
    goals = FleetWeights({"strict": DatabaseWeight(p99="1.5ms"), "lax": DatabaseWeight(p99="3.5ms")})
    fleet = [
        database("strict", recorded("missed"), logged(0.1, verdict="reached")),
        database("lax", recorded("missed"), logged(0.1, verdict="reached")),
        database("plain", logged(0.1)),
        database("other", logged(0.1)),
        database("busy", logged(0.9)),
    ]
    advice, _ = shared(advised(*fleet, weights=goals))
    assert advice.sharing and packs(advice) == [["busy", "lax", "plain"]]
    reasons = {log.database: log.reason for log in advice.sharing.separate}
    assert "strict would not surely reach its p99" in reasons["strict"]
    unsure = database("strict", recorded("missed"), logged(0.1, verdict="likely reached"))
    advice, server = shared(
        advised(unsure, fleet[2], weights=FleetWeights({"strict": DatabaseWeight(p99="1.5ms")}))
    )
    assert not packs(advice) and not server.asked


def test_the_shared_price_lets_others_move_within_the_budget() -> None:
    fleet = [database(f"db{number}", logged(0.1, speedup=2 + number / 10)) for number in range(6)]
    before = advised(*fleet, budget="12")
    advice, _ = shared(before)
    assert sum(bool(database.chosen) for database in before.databases) == 1
    assert advice.sharing and packs(advice) == [["db2", "db3", "db4", "db5"]]
    assert advice.sharing.cost_per_month == pytest.approx(NVME_COST)
    assert {move.database for move in advice.sharing.begun} == {"db2", "db3", "db4"}
    assert (
        advice.sharing.gain > before.gain and before.model_copy(update={"sharing": advice.sharing}) == advice
    )


def test_saved_money_buys_further_moves_and_no_round_spends_more_than_the_budget() -> None:
    rng = random.Random(3)
    for _ in range(8):
        fleet = [
            database(
                f"db{number}",
                logged(rng.uniform(0.05, 0.6), speedup=rng.uniform(1.2, 4)),
                option(rng.uniform(5, 60), rng.uniform(2, 9), [Role.DATA]),
            )
            for number in range(8)
        ]
        budget = rng.uniform(20, 120)
        before = advised(*fleet, budget=f"{budget:.2f}")
        advice, _ = shared(before, least_kept=1.0)
        assert advice.sharing
        assert advice.sharing.cost_per_month <= round(budget, 2) + 1e-3
        assert advice.sharing.gain >= before.gain - 1e-9


def test_a_rented_volume_that_is_billed_by_size_is_not_shared() -> None:
    rented = {"device": GP3, "cost": 8.0, "size_bytes": 100 * GIB}
    fleet = [database(name, logged(0.1, **rented)) for name in "ab"]
    advice, server = shared(advised(*fleet))
    assert advice.sharing and not advice.sharing.devices and not server.asked
    assert {log.reason for log in advice.sharing.separate} == {
        "no other log on a device of this kind shares it",
        "sharing saves next to nothing, since the device is billed by size or by wear",
    }


def test_the_reason_is_that_of_the_device_of_the_set_not_of_a_faster_one_that_was_tried() -> None:
    slow, fast = logged(0.1, device=GP3, cost=1.0), logged(0.1, cost=30.0, speedup=4.0)
    fleet = [database("a", logged(0.1)), database("b", logged(0.1)), database("rented", slow, fast)]
    advice, _ = shared(advised(*fleet, budget="21/month"), most=2)
    assert advice.sharing and packs(advice) == [["a", "b"]]
    (separate,) = advice.sharing.separate
    assert (separate.device, separate.reason) == (GP3, "no other log on a device of this kind shares it")


def test_a_database_that_cannot_be_replayed_with_others_is_named() -> None:
    class Torn(OneServer):
        def __call__(self, members: Members) -> list[SharedDatabase]:
            raise TierwiseError("b: the recording is gone", "record again")

    fleet = [database("once", logged(0.5, obstacle="its work was done once")), database("a", logged(0.2))]
    advice, server = shared(advised(*fleet))
    assert advice.sharing and not server.asked
    assert "once: its work was done once" in [log.reason for log in advice.sharing.separate]
    torn = advised(database("a", logged(0.2)), database("b", logged(0.1)))
    sharing = advice_with_shared_logs(torn, PaymentTerms(), Torn(), SharingLimits()).sharing
    assert sharing and sharing.separate[1].reason == "b: the recording is gone"


def test_shared_devices_in_words(snapshot: SnapshotAssertion) -> None:
    fleet = [
        database(f"shop-{number}", logged(0.2 + number / 50, speedup=2 + number / 10)) for number in range(7)
    ]
    far = database("far", logged(0.3, device=GP3, cost=8.0, size_bytes=100 * GIB))
    advice, _ = shared(advised(*fleet, far, budget="45"), most=5)
    shown = to_markdown([*fleet_answer_texts(advice), *sharing_blocks(advice)])
    assert shown.replace("\u00a0", " ") == snapshot


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["fleet", "advise", *arguments], env={"COLUMNS": "160"})
    if done.exception:
        raise done.exception
    return done.stdout


def test_shipped_recordings_share_a_device(tmp_path: Path) -> None:
    for day, name in enumerate(("north", "south", "east"), 1):
        shutil.copytree(EXAMPLES / "order-entry", tmp_path / "all" / name)
        file = tmp_path / "all" / name / "about.json"
        about = json.loads(file.read_bytes())
        file.write_text(json.dumps(about | {"started_at": f"2026-11-0{day}T12:00:00Z"}))
    shutil.copytree(EXAMPLES / "keyed-update", tmp_path / "all" / "once")
    page = tmp_path / "fleet.html"
    asked = [f"{tmp_path}/all/*", "--devices", "dram-fc", "--seeds", "2", "--share"]
    printed = invoke(*asked, "--format", "json", "-o", str(page))
    content = json.loads(printed[: printed.rindex("}") + 1])
    assert not problems("fleet-advice", content)
    fleet = content["fleet"]
    (device,) = fleet["sharing"]["devices"]
    assert device["name"] == "ssd-dram-fc#1"
    assert sorted(database["database"] for database in device["databases"]) == ["east", "north", "south"]
    alone = {database["name"]: database["options"][database["chosen"]] for database in fleet["databases"]}
    for member in device["databases"]:
        for figure, own in (("rate_alone_per_s", "rate_per_s"), ("p99_alone_us", "p99_us")):
            assert member[figure] == alone[member["database"]][own], "alone, it is its own prediction"
        assert member["kept"]["low"] >= 0.9
    assert fleet["sharing"]["saved_per_month"] == pytest.approx(2 * device["cost_per_month"])
    assert [load["database"] for load in fleet["sharing"]["separate"]] == ["once"]
    assert "ssd-dram-fc#1" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--share-loss", "5%"], "--share-loss and --share-most limit"),
        (["--share", "--share-loss", "some"], "--share-loss: 'some' is no percentage"),
        (["--share", "--share-loss", "100%"], "leaves nothing"),
    ],
)
def test_limits_that_are_wrong_are_refused(arguments: list[str], named: str) -> None:
    with pytest.raises(TierwiseError, match=named):
        invoke(str(EXAMPLES / "order-entry"), "--devices", "nvme-dc", *arguments)
