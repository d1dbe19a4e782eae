"""``python -m tierwise`` is the command ``tierwise``."""

from __future__ import annotations

import os
import signal
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line.

    An interrupt before the command is imported ends the process at once: nothing was done yet, and an
    exception could be lost in a callback of the import system.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from tierwise import cli

    cli.main(sys.argv[1:])


if __name__ == "__main__":
    main()
