"""Print the lower bounds of pyproject.toml as constraints, for ``pip install --constraint``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest() -> list[str]:
    """Lines such as ``numpy==1.26``, of all dependencies and extras but those of developers."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    listed = {*project["dependencies"], *project["optional-dependencies"]["all"]}
    matches = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", line) for line in sorted(listed))
    return [f"{match[1]}=={match[2]}" for match in matches if match]


if __name__ == "__main__":
    print("\n".join(lowest()))
