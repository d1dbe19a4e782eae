"""MariaDB, as Debian packages it."""
