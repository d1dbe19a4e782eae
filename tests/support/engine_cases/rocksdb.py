"""RocksDB, which takes operations on objects."""

from support.engine_contract import OBJECTS, EngineCase

CASES = [
    EngineCase(
        "rocksdb",
        setting=("write_buffer_size", "4194304", "4194304"),
        bad_value=("write_buffer_size", "many"),
        shown_limits={"block_cache": str(192 << 20), "db_write_buffer_size": str(96 << 20)},
        statements=OBJECTS,
    )
]
