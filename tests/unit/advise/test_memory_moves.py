"""Memory beside the moves of an advice: sizes up to that of all tables, with what each gains and costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.fake_memory import GIB, advice
from tierwise.advise import Advice, PaymentTerms
from tierwise.device_models.prices import PriceList
from tierwise.model.errors import TierwiseError
from tierwise.report.document import Table, Text
from tierwise.report.recording.alternatives import memory_blocks


def words(advice: Advice) -> str:
    return " ".join(block.text for block in memory_blocks(advice) if isinstance(block, Text))


def test_the_buffer_takes_what_is_added_until_it_holds_all_tables_and_indexes() -> None:
    moves = advice().memory
    assert [move.added_bytes for move in moves] == [GIB, 2 * GIB, 4 * GIB, 6 * GIB, 8 * GIB]
    assert [move.holds_all for move in moves] == [False] * 4 + [True]
    for move in moves:
        assert move.buffer_bytes == GIB + move.added_bytes
        assert move.memory_bytes == 8 * 10**9 + move.added_bytes
        assert move.cost_per_month == pytest.approx(2.17 * move.added_bytes / GIB)
    gains = [move.gain_per_s for move in moves]
    assert gains == sorted(gains) and moves[-1].worthwhile


def test_without_a_buffer_of_its_own_the_page_cache_takes_it() -> None:
    moves = advice(page_cache={"likely_bytes": 3 * GIB}).memory
    assert {move.buffer_bytes for move in moves} == {None}
    assert moves[-1].added_bytes == 6 * GIB and moves[-1].holds_all


def test_a_buffer_takes_memory_that_no_file_uses_for_nothing() -> None:
    cache = {"engine_bytes": GIB, "likely_bytes": 5 * GIB, "passed": True}
    moves = advice(page_cache=cache).memory
    assert [move.buffer_bytes for move in moves] == [2 * GIB, 3 * GIB, 5 * GIB, 7 * GIB, 9 * GIB]
    assert [move.added_bytes for move in moves] == [0, 0, 0, GIB, 3 * GIB]
    assert [move.cost_per_month for move in moves[:3]] == [0.0, 0.0, 0.0]
    advised = advice("sata-dc", page_cache={**cache, "likely_bytes": 7 * GIB})
    assert "A larger buffer in the memory that is there gains as much" in words(advised)


@pytest.mark.parametrize(
    "work",
    [
        {"can_change_memory": False},
        {"demands": {"reads": {}}},
        {"page_cache": {"engine_bytes": 20 * GIB}},
    ],
    ids=["not known", "no device is read", "all fits already"],
)
def test_where_memory_cannot_help_or_is_not_known_none_is_listed(work: dict[str, Any]) -> None:
    assert advice(**work).memory == []
    assert memory_blocks(advice(**work)) == []


def test_it_is_compared_with_the_recommended_move() -> None:
    advised = advice("sata-dc")
    table, *_ = memory_blocks(advised)
    assert isinstance(table, Table) and len(table.rows) == 5
    assert "more memory gains as much as the recommended move, for " in words(advised)
    assert "quoted from memory" in words(advised) and "not checked" in words(advised)


def test_a_user_prices_memory_in_a_currency_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    device = '[devices.ssd-nvme-dc]\npurchase = 400.0\nsource = "our supplier"\ndate = "2026"\n'
    memory = '[memory]\nper_gib_month = 1.5\nsource = "our supplier"\ndate = "2026"\n'
    file.write_text(f'currency = "EUR"\n{device}{memory}')
    costs = [move.cost_per_month for move in advice(terms=PaymentTerms(prices=PriceList.read(file))).memory]
    assert costs == [1.5, 3.0, 6.0, 9.0, 12.0]
    file.write_text(f'currency = "EUR"\n{device}')
    assert {
        move.cost_per_month for move in advice(terms=PaymentTerms(prices=PriceList.read(file))).memory
    } == {None}
    file.write_text(f'currency = "EUR"\n{device}[memory]\nper_gib_month = -1\n')
    with pytest.raises(TierwiseError, match=r"memory\.per_gib_month"):
        PriceList.read(file)
