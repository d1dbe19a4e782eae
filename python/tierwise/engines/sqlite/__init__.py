"""SQLite, its kinds of files placed apart."""
