"""Refresh functions 1 and 2 (TPC-H specification, clauses 2.5.2 and 2.5.3) as statements.

New rows wait in tables of their own, which replace the files of other implementations. A pair's keys lie
close together, inserted ones between deleted ones, and differ in their remainder: see
``crates/tpch/src/keys.rs``.
"""

from __future__ import annotations

from tierwise import _core
from tierwise.workloads.dss.sequence import REFRESH

REFRESHED = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""Tables that are refreshed, by the column with the order's key."""

_LOADED = "{key} % 32 < 8"


def waiting_table(table: str) -> str:
    """Name of the table in which the new rows of another wait."""
    return f"refresh_{table}"


def statements(function: str, pair: int, scale_factor: float) -> list[str]:
    """The statements of a refresh function, as one transaction.

    Args:
        function: ``rf1`` or ``rf2``.
        pair: from 1; each pair has keys of its own.
        scale_factor: of the tables.

    Raises:
        TierwiseError: if there are no orders left to replace.
    """
    first_new, last_new, first_old, last_old = _core.tpch_refresh_keys(scale_factor, pair)
    if function == REFRESH[0]:
        return [
            f"INSERT INTO {table} SELECT * FROM {waiting_table(table)} "
            f"WHERE {key} BETWEEN {first_new} AND {last_new}"
            for table, key in REFRESHED.items()
        ]
    return [
        f"DELETE FROM {table} WHERE {key} BETWEEN {first_old} AND {last_old} AND {_LOADED.format(key=key)}"
        for table, key in reversed(REFRESHED.items())
    ]
