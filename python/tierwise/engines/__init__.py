"""Database adapters: one file for each engine."""
