"""``python -m tierwise`` is the command ``tierwise``."""

from __future__ import annotations

import os
import sys

# The module signal imports others first, which an interrupt may meet.
from _signal import SIGINT, signal  # type: ignore[import-not-found]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line.

    An interrupt before the command is imported ends the process at once: nothing was done yet, and an
    exception could be lost in a callback of the import system.
    """
    signal(SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from tierwise import cli

    cli.main(sys.argv[1:])


if __name__ == "__main__":
    main()
