"""Inside a fresh root: ``installed.py newcomer`` installs the wheel; ``predict`` and ``lab`` check an image.

fresh_root.py runs it as root. It uses Python's standard library only.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from pathlib import Path

from checks.disks import ext4
from checks.studies import duckdb, mariadb, postgres, rocksdb, sqlite
from checks.tools import RECORDINGS, run

RECORDING = RECORDINGS / "keyed-update"
LIMIT_S = float(os.environ.get("LIMIT_S") or "inf")
"""From the wheel to the advice."""
COMPILERS = ("cc", "gcc", "clang", "rustc", "cargo", "zig")
USER = "dba"
HOME = Path("/home") / USER


def newcomer() -> None:
    """An ordinary user installs the wheel without a compiler, predicts and advises, within the limit."""
    assert not [name for name in COMPILERS if shutil.which(name)], "the root has a compiler"
    run("useradd", "--create-home", USER)
    (wheel,) = Path("/opt/dist").glob("*.whl")
    place = HOME / "tierwise"
    steps = {"venv": _as_user("python3", "-m", "venv", place)}
    packages = next(place.glob("lib/python3*/site-packages"))
    empty = _megabytes(packages)
    steps["pip"] = _as_user(place / "bin" / "pip", "install", "--quiet", wheel)
    steps |= _answers(place / "bin" / "tierwise")
    total = sum(steps.values())
    print(
        f"install: {_system()}: {', '.join(f'{name} {seconds:.1f} s' for name, seconds in steps.items())}; "
        f"{total:.1f} s in all; {_megabytes(packages) - empty:.0f} MB installed, of which tierwise "
        f"{_megabytes(packages / 'tierwise'):.0f} MB; wheel {wheel.stat().st_size / 1e6:.1f} MB"
    )
    assert total < LIMIT_S, f"it took {total:.0f} s"


def predict() -> None:
    """The image without privileges answers as its user, who cannot change it."""
    steps = _answers(Path("/usr/local/bin/tierwise"))
    completed = run("runuser", "-u", USER, "--", "touch", "/opt/tierwise/changed", status=1)
    assert "Permission denied" in completed, completed
    print(
        f"predict: {_system()}: {', '.join(f'{name} {seconds:.1f} s' for name, seconds in steps.items())}; "
        f"/opt/tierwise has {_megabytes(Path('/opt/tierwise')):.0f} MB"
    )


def lab() -> None:
    """The image of all engines: an emulated disk, and a study on each engine."""
    for check in (ext4, postgres, mariadb, sqlite, rocksdb, duckdb):
        started = time.monotonic()
        print(f"lab: {check.__name__}: ", end="", flush=True)
        check()
        print(f"lab: {check.__name__} took {time.monotonic() - started:.0f} s", flush=True)
    run("tierwise", "clean")
    print(f"lab: {_system()}: /opt/tierwise has {_megabytes(Path('/opt/tierwise')):.0f} MB")


def _answers(tierwise: Path) -> dict[str, float]:
    """Seconds of a prediction, and of advice with its page."""
    page = HOME / "advice.html"
    took = {"predict": _as_user(tierwise, "predict", RECORDING, "--place", "data=ssd-pcie-slc-2008")}
    took["advise"] = _as_user(tierwise, "advise", RECORDING, "--devices", "nvme-dc,gp3", "-o", page)
    assert page.read_text("utf-8").startswith("<!doctype html>"), page.read_text("utf-8")[:200]
    page.unlink()
    return took


def _as_user(*command: str | Path) -> float:
    """Run it as the ordinary user; gives the seconds that it took."""
    started = time.monotonic()
    run("env", f"HOME={HOME}", *command, user=USER)
    return time.monotonic() - started


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _system() -> str:
    release = platform.freedesktop_os_release()
    return f"{release['PRETTY_NAME']}, {platform.machine()}, Python {platform.python_version()}"


if __name__ == "__main__":
    {"newcomer": newcomer, "predict": predict, "lab": lab}[sys.argv[1]]()
