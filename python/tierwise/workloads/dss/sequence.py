"""Names of the laps of a run (TPC-H specification, clause 5.3): power and throughput sequence."""

from __future__ import annotations

from tierwise.workloads.dss.streams import order

REFRESH = ("rf1", "rf2")
"""Refresh functions: insert new orders, delete the same number of old ones."""


def query_lap(query: int, stream: int = 0) -> str:
    """Name of the lap in which a stream asks a query; stream 0 is the power sequence."""
    return f"s{stream}.q{query}" if stream else f"q{query}"


def refresh_lap(function: str, pair: int = 0) -> str:
    """Name of the lap of a refresh function; pair 0 is that of the power sequence."""
    return f"s{pair}.{function}" if pair else function


def power_laps() -> tuple[list[str], list[str]]:
    """The queries of the power sequence in their order, and the refresh functions before and after them."""
    return [query_lap(query) for query in order(0)], [refresh_lap(function) for function in REFRESH]


def throughput_streams(streams: int) -> list[list[str]]:
    """The query streams of the throughput sequence, then one stream with a refresh pair for each."""
    numbers = range(1, streams + 1)
    queries = [[query_lap(query, stream) for query in order(stream)] for stream in numbers]
    refreshes = [refresh_lap(function, pair) for pair in numbers for function in REFRESH]
    return [*queries, refreshes] if refreshes else []
