#!/usr/bin/env python3
"""Installs tierwise in a fresh Debian root: as a newcomer does, or by the steps of a container image.

``compat/fresh_root.py install|predict|lab … [--suite SUITE] [--dist FOLDER] [--limit SECONDS]`` needs root,
mmdebstrap and a wheel for this processor. The root lies in memory, in namespaces of its own: when the last
process ends, however it ends, the kernel removes all of it. See README.md.
"""

from __future__ import annotations

import argparse
import ast
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

from rootfs import HERE, PROJECT, debian_mirror

PACKAGES = "ca-certificates,python3-venv"
"""Of a fresh root, besides what every Debian has."""
STEPS = {
    "install": ["python3 /opt/compat/installed.py newcomer"],
    "predict": ["/opt/compat/image.sh predict /opt/dist", "python3 /opt/compat/installed.py predict"],
    "lab": ["/opt/compat/image.sh lab /opt/dist", "python3 /opt/compat/installed.py lab"],
}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MAKE = r"""
set -euo pipefail
mount -t tmpfs -o mode=755 root /mnt
mmdebstrap --quiet --variant=minbase --include="$PACKAGES" "$SUITE" /mnt "$SOURCE" >&2
mount --rbind /dev /mnt/dev
mount --rbind /sys /mnt/sys
mount --rbind /proc /mnt/proc
mount -t tmpfs -o mode=755 run /mnt/run
if [ -n "$LEDGER" ]; then
    mkdir -p "$LEDGER" "/mnt$LEDGER"
    mount --bind "$LEDGER" "/mnt$LEDGER"
fi
mkdir -p /mnt/opt/dist
cp "$WHEEL" /mnt/opt/dist
cp -R "$COMPAT" /mnt/opt/compat
cp -R "$EXAMPLES" /mnt/opt/compat/examples
for file in $COPIED; do
    mkdir -p "/mnt${file%/*}"
    cp "$file" "/mnt$file"
done
exec chroot /mnt env -i "$@" bash -euc "$STEPS"
"""


def main() -> int:
    """Run the steps one after the other in one root; gives the exit status of the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="+", choices=STEPS, metavar="STEP", help=f"of {', '.join(STEPS)}")
    parser.add_argument("--suite", default="bookworm", help="Debian suite (default: %(default)s)")
    parser.add_argument("--dist", type=Path, default=PROJECT / "dist", help="folder of the wheel")
    parser.add_argument("--limit", default="", help="most seconds of the step install (default: none)")
    asked = parser.parse_args()
    wheel = wheel_in(asked.dist)
    return run(asked.suite, wheel, asked.steps, asked.limit)


def wheel_in(dist: Path) -> Path:
    """The wheel for this processor.

    Raises:
        SystemExit: if there is none, or more than one.
    """
    paths = list(dist.glob(f"tierwise-*_{platform.machine()}.whl"))
    if len(paths) != 1:
        raise SystemExit(f"{dist} has {len(paths)} wheels for {platform.machine()}: run 'make wheels'")
    return paths[0].resolve()


def run(suite: str, wheel: Path, steps: list[str], limit_s: str) -> int:
    """Make a root and run these of :data:`STEPS` in it, as root; gives their exit status.

    Emulated disks outlive a namespace, so with the step ``lab`` the processes and the ledger are the
    machine's: after a kill, ``tierwise clean`` undoes it.
    """
    emulates = "lab" in steps
    settings = {**_of_the_machine(), "PATH": _PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "LIMIT_S": limit_s}
    copied = ["/etc/hosts", "/etc/resolv.conf", *settings.values()]
    facts = {
        "PACKAGES": PACKAGES,
        "SUITE": suite,
        "SOURCE": f"deb {debian_mirror()} {suite} main",
        "LEDGER": "/run/tierwise" if emulates else "",
        "WHEEL": str(wheel),
        "COMPAT": str(HERE),
        "EXAMPLES": str(PROJECT / "examples"),
        "COPIED": shlex.join(path for path in copied if path.startswith("/") and Path(path).is_file()),
        "STEPS": "\n".join(line for step in steps for line in STEPS[step]),
    }
    apart = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--fork", "--kill-child"]
    apart += [] if emulates else ["--pid", "--mount-proc"]
    words = [f"{name}={value}" for name, value in settings.items()]
    command = [*apart, "bash", "-c", _MAKE, "fresh_root", *words]
    return subprocess.run(command, env={**os.environ, **facts}, check=False).returncode


def _of_the_machine() -> dict[str, str]:
    """How this machine reaches its package index: variables of its environment, and pip's own settings.

    Without the versions that this project is tested with: a newcomer has others.
    """
    own = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    named = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    values = {name: value for name, value in own.items() if name.upper().startswith(named)}
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        name = "PIP_" + key.rpartition(".")[2].upper().replace("-", "_")
        values.setdefault(name, ast.literal_eval(value))
    return values


if __name__ == "__main__":
    sys.exit(main())
