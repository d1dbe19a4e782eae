"""Memory limits and block I/O with control groups of version 2, started from a user's login session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from checks.tools import left_behind, passed_on

STARTS = 20

LIMITED = """
import sys, time
from pathlib import Path
from tierwise.host import processes
from tierwise.host.cgroups import MemoryLimit

def group(pid):
    return Path("/sys/fs/cgroup") / Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::/")

for _ in range(%d):
    with MemoryLimit.make(64 << 20) as limit:
        child = processes.start("child", ["sleep", "60"])
        limit.confine(child.pid)
        own, mine = group(child.pid), group("self")
        assert own.parent.name == "tierwise", own
        assert (own / "memory.max").read_text().strip() == str(64 << 20), own
        assert "io" in (own / "cgroup.controllers").read_text().split(), own
        assert (mine / "memory.max").read_text().strip() == "max", mine
        child.kill()
print(mine)
"""

GREEDY = """
import sys
from tierwise.host import processes
from tierwise.host.cgroups import MemoryLimit
with MemoryLimit.make(32 << 20) as limit:
    script = "import time; time.sleep(3); bytearray(99 << 20)"
    child = processes.start("greedy", [sys.executable, "-c", script])
    limit.confine(child.pid)
    child.popen.wait()
    assert limit.kills() == 1, limit.kills()
    child.kill()
print("1 process ended at the limit, and counted")
"""


def limit_of_a_session() -> None:
    """No limit is set on the starting user's group."""
    print(_in_a_session(LIMITED % STARTS))


def kills_are_counted() -> None:
    """Processes that the kernel kills for lack of memory are counted."""
    print(_in_a_session(GREEDY))


def _in_a_session(script: str) -> str:
    """Run a script of Python in a scope like a login session's, which must survive without a limit."""
    before = passed_on()
    command = ["systemd-run", "--quiet", "--scope", "--slice=user.slice", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not left_behind(), left_behind()
    limits = [
        path
        for path in Path("/sys/fs/cgroup/user.slice").rglob("memory.max")
        if path.read_text().strip() != "max"
    ]
    assert not limits, f"limits that stayed: {limits}"
    assert passed_on() == before, f"the root group passes on {passed_on()}, and {before} before"
    return done.stdout.strip()


CHECKS = [limit_of_a_session, kills_are_counted]
