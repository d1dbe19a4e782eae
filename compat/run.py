"""Boots stock kernels with control groups of version 2 and checks tierwise inside: ``make compat``.

``python compat/run.py [GUEST …] [--checks NAME …] [--kernel DEB …]`` needs root, for the guests' root
directories, and the packages mmdebstrap and qemu-system-x86 of Debian. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from machine import boot
from rootfs import BUILT, PROJECT, Guest, guests, make_image

LIMIT_S = 5400


def main() -> int:
    """Check every guest that is asked for; gives 1 if a check failed or did not run."""
    known = guests()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("guests", nargs="*", metavar="GUEST", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument(
        "--checks", nargs="*", default=[], metavar="NAME", help="modules of compat/checks (default: all)"
    )
    parser.add_argument(
        "--kernel",
        nargs="*",
        default=[],
        type=Path,
        metavar="DEB",
        help="packages of a kernel, as of Ubuntu, to boot in place of the guest's own",
    )
    asked = parser.parse_args()
    for name in asked.guests:
        if name not in known:
            parser.error(
                f"{name!r} is no guest: choose of {', '.join(known)}, or add it to compat/guests.toml"
            )
    wheel = build_wheel()
    files = tuple(file.resolve(strict=True) for file in asked.kernel)
    chosen = [replace(known[name], kernel_files=files) for name in asked.guests or known]
    # An emulated guest uses one core, whatever it has.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(lambda guest: check(guest, wheel, asked.checks), chosen))


def build_wheel() -> Path:
    """Build the wheel that the guests install."""
    out = BUILT / "wheel"
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "build", "--release", "--locked", "--quiet", "--out", out], cwd=PROJECT, check=True
    )
    return max(out.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def check(guest: Guest, wheel: Path, checks: list[str]) -> int:
    """Run the checks in one guest and print each; gives 1 if one failed or the last was not reached."""
    started = time.monotonic()
    image = make_image(guest, wheel, checks)
    print(f"{guest.name}: image made in {time.monotonic() - started:.0f} s; booting", flush=True)
    started = time.monotonic()
    report = boot(guest.folder, image, LIMIT_S, lambda line: print_line(guest, line))
    image.unlink()
    lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    failed = [line["check"] for line in lines if not line["ok"]]
    ended = bool(lines) and lines[-1]["check"] == "end"
    verdict = (
        "passed"
        if ended and not failed
        else f"FAILED: {', '.join(failed) or 'the guest did not get to its end'}"
    )
    print(f"{guest.name}: {verdict}; {len(lines)} lines in {time.monotonic() - started:.0f} s", flush=True)
    if failed or not ended:
        print(f"{guest.name}: its console is {guest.folder / 'console.log'}")
        return 1
    return 0


def print_line(guest: Guest, line: str) -> None:
    """Print one line of a guest's report."""
    content = json.loads(line)
    state = "ok" if content["ok"] else "FAILED"
    print(
        f"{guest.name}: {state:7}{content['seconds']:6.0f} s  {content['check']}: {content['detail']}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
