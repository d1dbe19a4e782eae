"""SQLite, with separately placed kinds of files."""
