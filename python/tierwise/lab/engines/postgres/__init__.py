"""PostgreSQL, embedded or the system's."""
