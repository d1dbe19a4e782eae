"""MariaDB from the Debian packages."""
