"""``python -m tierwise`` is the command ``tierwise``."""

from __future__ import annotations

import signal
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. An interrupt before it is loaded ends it without a word, as nothing was done."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(_INTERRUPTED))
    from tierwise import cli

    signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
