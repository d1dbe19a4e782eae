"""DuckDB, for decision support."""
