"""Code that a stranger plants: it notes which account ran it, and where."""

from __future__ import annotations

import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

MODULES = ("argparse", "json", "socket", "signal", "multiprocessing", "tierwise", "duckdb", "distributed")
"""Names that tierwise's processes and Python itself import."""


@dataclass
class Planted:
    """A directory with a file to which planted code adds a line; every account can reach both."""

    directory: Path

    def __post_init__(self) -> None:
        self.marker.touch()
        self.marker.chmod(0o666)
        self.directory.chmod(0o755)

    @property
    def marker(self) -> Path:
        return self.directory / "ran"

    @property
    def python(self) -> str:
        """A line of Python."""
        return f'import os; open("{self.marker}", "a").write(f"{{os.geteuid()}} {{__name__}}\\n")'

    def users(self) -> set[int]:
        """Every account that ran some of it."""
        return {int(line.split()[0]) for line in self.marker.read_text().splitlines()}

    def modules(self, place: Path) -> None:
        """Fill a directory with modules in place of those that programs import."""
        place.mkdir(exist_ok=True)
        for name in MODULES:
            (place / f"{name}.py").write_text(self.python)
        (place / "sitecustomize.py").write_text(self.python)
        (place / "encodings").mkdir(exist_ok=True)
        (place / "encodings" / "__init__.py").write_text(self.python)
        for path in [place, *place.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)

    def library(self, name: str) -> Path:
        """A shared library that runs when it is loaded."""
        source = self.directory / "planted.c"
        source.write_text(
            textwrap.dedent(f"""
                #include <fcntl.h>
                #include <stdio.h>
                #include <unistd.h>
                __attribute__((constructor)) static void ran(void) {{
                    char line[32];
                    int length = snprintf(line, sizeof line, "%d library\\n", (int)geteuid());
                    int file = open("{self.marker}", O_WRONLY | O_APPEND);
                    if (file >= 0 && write(file, line, length) == length) close(file);
                }}
            """)
        )
        made = self.directory / name
        subprocess.run(["cc", "-shared", "-fPIC", "-o", made, source], check=True)
        made.chmod(0o755)
        return made
