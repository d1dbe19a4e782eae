"""RocksDB, the store of objects."""
