"""Who sees whether the machine lets a program run when it wants to, beside a test that measures real time."""

from __future__ import annotations

import subprocess
import sys

DISTURBED_SHARE = 0.1
"""Of wake-ups that come late, from which a machine is disturbed; a quiet one has hardly any."""

# Wakes each millisecond at an instant settled before, so that each one that is slept through is late too.
WAKE = """
import select, sys, time
late = count = 0
due = time.monotonic()
while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
    count += 1
    late += time.monotonic() - due > 0.0003
    due += 0.001
print(late / max(count, 1))
"""


class Witness:
    """A process of its own that counts late wake-ups as long as the context lasts."""

    def __enter__(self) -> Witness:
        self.late_share = 0.0
        self._process = subprocess.Popen(
            [sys.executable, "-c", WAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        output, _ = self._process.communicate("end\n")
        self.late_share = float(output)

    def disturbed(self) -> bool:
        """Whether the machine was; says so on the standard output."""
        disturbed = self.late_share > DISTURBED_SHARE
        print(
            f"{self.late_share:.1%} of wake-ups late: the machine was {'disturbed' if disturbed else 'quiet'}"
        )
        return disturbed
