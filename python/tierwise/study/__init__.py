"""Studies: a question as data, its points and its runs in order."""

from tierwise.study.study import (
    FILE_ENGINE,
    Overrides,
    Study,
    load,
    names,
    parse,
)

__all__ = [
    "FILE_ENGINE",
    "Overrides",
    "Study",
    "load",
    "names",
    "parse",
]
