"""Install a wheel with each extra into an environment of its own, and see that it does what it promises.

``python tools/try_extras.py dist/*.whl`` takes minutes and needs a package index. For each extra it prints
the size of the installation, then whatever fails: what it brings, or a line that names a missing extra.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from lowest import lowest  # noqa: E402

from support.extras_promises import PROMISES, SMALL, names_the_line, run  # noqa: E402

_TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


def main() -> int:
    """Try what the arguments name; 1 if anything was not as promised."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("extras", nargs="*", default=["", *PROMISES, "all"], help="default: none, each, all")
    parser.add_argument("--lowest", action="store_true", help="install the lower bounds of pyproject.toml")
    given = parser.parse_args()
    failures: list[str] = []
    for extra in given.extras:
        with tempfile.TemporaryDirectory(prefix="tierwise-extra-") as directory:
            Path(directory).chmod(0o755)
            python = installed(Path(directory) / "venv", given.wheel.resolve(), extra, given.lowest)
            print(f"{extra or 'tierwise'}: {size_mb(python):.0f} MB", flush=True)
            for problem in problems(python, extra, Path(directory)):
                failures.append(f"{extra or 'tierwise'}: {problem}")
                print(f"  {problem}", flush=True)
    print(f"{len(failures)} not as promised")
    return 1 if failures else 0


def installed(directory: Path, wheel: Path, extra: str, at_lowest: bool) -> Path:
    """An environment with the wheel and one extra; returns its Python."""
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    bounds = directory / "bounds.txt"
    bounds.write_text("\n".join(lowest()) if at_lowest else "")
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--constraint", bounds, what],
        check=True,
        env={name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"},
    )
    return python


def size_mb(python: Path) -> float:
    """Size of what was installed, without pip itself."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    ours = [path for path in site.iterdir() if not path.name.startswith(_TOOLS)]
    files = [file for our in ours for file in ([our] if our.is_file() else our.rglob("*"))]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def problems(python: Path, extra: str, tmp: Path) -> Iterator[str]:
    """What the installation does not do, or does without the extra that promises it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for name, arguments in SMALL.items():
        done = run(python, environment, tmp, arguments)
        if done.returncode:
            yield f"{name}: {done.stderr.strip()}"
    parts = {"lab": {*PROMISES} - {"serve", "cluster"}, "all": {*PROMISES}}.get(extra, {extra})
    for other, arguments in PROMISES.items():
        done = run(python, environment, tmp, arguments)
        if other in parts:
            without_server = other == "mariadb" and shutil.which("mariadbd") is None
            if done.returncode and not without_server:
                yield f"{' '.join(arguments)}: {done.stderr.strip()}"
        elif other == "sqlite" and extra in ("mariadb", "duckdb"):
            continue  # they bring the same libraries
        elif not names_the_line(done, other):
            yield f"{' '.join(arguments)} does not name {other}: {done.stderr.strip()}"


if __name__ == "__main__":
    sys.exit(main())
