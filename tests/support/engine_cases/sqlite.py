"""SQLite, with a write-ahead log."""

from support.engine_contract import EngineCase

CASES = [
    EngineCase(
        "sqlite",
        setting=("wal_autocheckpoint", "500", "500"),
        bad_value=("cache_size", "many"),
        shown_limits={"cache_size": str(-(96 << 10)), "threads": "1"},
    )
]
