"""``python -m tierwise`` is the command ``tierwise``."""

from tierwise.cli import main

main()
