"""DuckDB."""

from dataclasses import replace

from support.engine_contract import SQL, EngineCase

# From the least and the greatest id DuckDB knows that no sum of ids is negative.
ENDLESS = "SELECT count(*) FROM item a, item b, item c WHERE hash(a.id, b.id, c.id) = 0"

CASES = [
    EngineCase(
        "duckdb",
        setting=("checkpoint_threshold", "4MiB", "4.0 MiB"),
        bad_value=("memory_limit", "many"),
        statements=replace(SQL, steps={**SQL.steps, "endless": (ENDLESS, None)}),
        shown_limits={"memory_limit": "307.1 MiB", "threads": "2"},
    )
]
