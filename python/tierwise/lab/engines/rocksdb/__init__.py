"""RocksDB as an object store."""
