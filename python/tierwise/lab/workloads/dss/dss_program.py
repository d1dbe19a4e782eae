"""The decision-support workload as a program: tables, statements, laps, refresh functions.

The refresh functions are 1 and 2 of the TPC-H specification, clauses 2.5.2 and 2.5.3.

New rows wait in tables of their own, which replace the files of other implementations. A pair's keys lie
close together, inserted ones between deleted ones, and differ in their remainder: see
``crates/tpch/src/tpch_table.rs``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.lab.workloads.dss.query_parameters import QUERIES, draw_query_parameters
from tierwise.lab.workloads.dss.query_sequence import (
    REFRESH,
    STREAMS_MAX,
    power_laps,
    query_lap_name,
    refresh_lap_name,
    throughput_streams,
)
from tierwise.lab.workloads.program import Lap, Program, RoleSql, Stage
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text

REFRESHED = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""Tables that are refreshed, by the column with the order's key."""

_LOADED = "{key} % 32 < 8"


def refresh_rows_table(table: str) -> str:
    """Name of the table in which the new rows of another wait."""
    return f"refresh_{table}"


def refresh_statements(function: str, pair: int, scale_factor: float) -> list[str]:
    """The statements of a refresh function, as one transaction.

    Args:
        function: ``rf1`` or ``rf2``.
        pair: from 1; each pair has keys of its own.
    """
    first_new, last_new, first_old, last_old = _core.tpch_refresh_keys(scale_factor, pair)
    if function == REFRESH[0]:
        return [
            f"INSERT INTO {table} SELECT * FROM {refresh_rows_table(table)} "
            f"WHERE {key} BETWEEN {first_new} AND {last_new}"
            for table, key in REFRESHED.items()
        ]
    return [
        f"DELETE FROM {table} WHERE {key} BETWEEN {first_old} AND {last_old} AND {_LOADED.format(key=key)}"
        for table, key in reversed(REFRESHED.items())
    ]


TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")
"""The largest first, so that generating the text pool of comments adds little to any table's time."""

Translate = Callable[[str, str], str]
"""Translates a statement to the engine's dialect; the second argument names its place in messages."""


@dataclass(frozen=True)
class DssSelection:
    """The parts to run, and the scale of the tables."""

    scale_factor: float
    seed: int
    load: bool
    queries: bool
    power: bool
    streams: int

    @classmethod
    def of(cls, constants: Mapping[str, float]) -> DssSelection:
        """The choice that a workload's constants make."""
        limits = {"load": 1, "queries": 1, "power": 1, "streams": STREAMS_MAX, "seed": 2**32}
        for name in sorted({"scale_factor", *limits} - constants.keys()):
            raise TierwiseError(
                f"constants.{name} is missing", "give it under [constants]; see docs/reference/dss.md"
            )
        for name, most in limits.items():
            if constants[name] not in range(most + 1):
                problem = f"constants.{name} is {constants[name]:g}"
                raise TierwiseError(problem, f"use a whole number from 0 to {most}")
        runs = [bool(constants[name]) for name in ("load", "queries", "power", "streams")]
        if not any(runs):
            raise TierwiseError("constants: nothing is run", "set load, queries, power or streams")
        if constants["queries"] and constants["power"]:
            raise TierwiseError("constants: both queries and power", "set one of them to 0")
        return cls(
            scale_factor=constants["scale_factor"],
            seed=round(constants["seed"]),
            load=runs[0],
            queries=runs[1],
            power=runs[2],
            streams=round(constants["streams"]),
        )

    @property
    def refresh_pairs(self) -> list[int]:
        """Pairs of refresh functions: 0 in the power sequence, the others numbered as the streams."""
        return [0] * self.power + list(range(1, self.streams + 1))


def build_dss_program(
    folder: Path,
    constants: Mapping[str, float],
    schema: RoleSql,
    after_load: RoleSql,
    translate: Translate,
) -> Program:
    """Build the program of a run.

    Args:
        schema: statements that make the tables, in the engine's dialect.
        after_load: primary keys, indexes and statistics, likewise.
    """
    choice = DssSelection.of(constants)
    waiting = (
        [statement for statement in schema if _created(statement[1]) in REFRESHED]
        if choice.refresh_pairs
        else []
    )
    queries = [_released(query_lap_name(query)) for query in QUERIES]
    power, (first, last) = power_laps()
    powered = [_released(first, capped=False), *map(_released, power), _released(last, capped=False)]
    stages = [
        [_load_laps(after_load)] if choice.load else [],
        [queries] if choice.queries else [],
        [powered] if choice.power else [],
        _throughput_laps(choice.streams),
    ]
    content = {
        "name": folder.resolve().name,
        "think_ms": 0.0,
        "tables": _tables(choice),
        "parameters": [],
        "transactions": _transactions(folder, choice, translate),
    }
    return Program(
        name=folder.resolve().name,
        json=json.dumps(content),
        schema=schema + [(role, _as_waiting(sql)) for role, sql in waiting],
        after_load=[] if choice.load else after_load,
        stages=[Stage(streams) for streams in stages if streams],
        score={"scale_factor": choice.scale_factor, "streams": choice.streams},
    )


def _tables(choice: DssSelection) -> list[dict[str, Any]]:
    source = {"kind": "tpch", "scale_factor": choice.scale_factor}
    loaded = [{"name": table, "source": {**source, "table": table}} for table in TABLES]
    waiting = [
        {
            "name": refresh_rows_table(table),
            "source": {**source, "table": table, "refresh_sets": choice.streams + 1},
        }
        for table in REFRESHED
    ]
    return loaded + waiting if choice.refresh_pairs else loaded


def _transactions(folder: Path, choice: DssSelection, translate: Translate) -> list[dict[str, Any]]:
    # Stream 0 is outside the throughput sequence.
    streams = [0] * (choice.queries or choice.power) + list(range(1, choice.streams + 1))
    queries = [
        _transaction(query_lap_name(query, stream), [_query(folder, query, stream, choice, translate)])
        for stream in streams
        for query in QUERIES
    ]
    refreshes = [
        _transaction(refresh_lap_name(function, pair), [translate(sql, function) for sql in refreshed])
        for pair in choice.refresh_pairs
        for function in REFRESH
        for refreshed in [refresh_statements(function, pair + 1, choice.scale_factor)]
    ]
    return queries + refreshes


def _transaction(name: str, sql: list[str]) -> dict[str, Any]:
    step = {"repeat": 1, "draw": [], "sql": sql}
    return {"name": name, "weight": 1.0, "autocommit": len(sql) == 1, "steps": [step]}


def _query(folder: Path, query: int, stream: int, choice: DssSelection, translate: Translate) -> str:
    file = folder / "queries" / f"q{query}.sql"
    parameters = draw_query_parameters(query, choice.seed, stream, choice.scale_factor)
    text = read_text(file, "write the query there")
    try:
        return translate(text.format_map(parameters), str(file))
    except (KeyError, ValueError, IndexError) as error:
        known = ", ".join(f"{{{name}}}" for name in parameters)
        raise TierwiseError(f"{file}: cannot fill in its parameters", f"it has {known}") from error


def _load_laps(after_load: RoleSql) -> list[Lap]:
    tables = [Lap(f"load {table}", load=table, capped=False) for table in TABLES]
    return tables + [Lap(_title(sql), statement=(role, sql), capped=False) for role, sql in after_load]


def _throughput_laps(streams: int) -> list[list[Lap]]:
    """Refresh functions are not capped: half of a pair would leave the tables of another size."""
    *queries, refreshes = throughput_streams(streams) or [[]]
    capped = [[Lap(name, transaction=name) for name in names] for names in queries]
    uncapped = [Lap(name, transaction=name, capped=False) for name in refreshes]
    return [*capped, uncapped] if uncapped else []


def _released(name: str, *, capped: bool = True) -> Lap:
    """A lap in a session of its own, which is released before the next."""
    return Lap(name, transaction=name, before=frozenset({"reconnect"}), capped=capped)


_TABLE = re.compile(r"^(?:CREATE TABLE|ALTER TABLE|ANALYZE(?: TABLE)?)\s+(\w+)", re.IGNORECASE)
_INDEX = re.compile(r"^CREATE INDEX\s+(\w+)", re.IGNORECASE)


def _created(sql: str) -> str | None:
    """The table that a statement makes or changes."""
    match = _TABLE.search(sql)
    return match[1] if match else None


def _as_waiting(sql: str) -> str:
    """The same statement for the table of rows that refresh sets will insert, which has no key."""
    table = _created(sql)
    assert table is not None
    return re.sub(rf"\b{table}\b", refresh_rows_table(table), sql, count=1)


def _title(sql: str) -> str:
    """Name of the lap of a statement."""
    if index := _INDEX.search(sql):
        return f"index {index[1]}"
    table = _created(sql) or sql
    return f"analyze {table}" if sql.upper().startswith("ANALYZE") else f"index {table}_pk"
