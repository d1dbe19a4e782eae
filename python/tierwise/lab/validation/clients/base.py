"""Interface of a client program in a validation: it prepares data, warms up, and runs measured work."""

from __future__ import annotations

import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from tierwise.host import processes, programs
from tierwise.host.interpreter import Command
from tierwise.host.processes import read_end
from tierwise.lab.validation.servers.base import Database
from tierwise.model.errors import TierwiseError
from tierwise.model.names import one_of

DatabaseT = TypeVar("DatabaseT", bound=Database)
Option = str | int | float
_LONGEST_S = 3600.0
_LARGEST = 1e9
_ABOVE_ZERO = frozenset({"scale", "tables", "value", "repeat"})
"""Options of which 0 means no work."""
_WORD = re.compile(r"[A-Za-z0-9_,-]+")
"""Allowed text options: they become parts of statements, program arguments and file names."""


@dataclass(frozen=True)
class Load:
    """Work of a client in one measured period."""

    elapsed_s: float
    transactions: int | None = None
    """Number of transactions; ``None`` for laps."""
    latency_us: dict[str, float] = field(default_factory=dict)
    """``p50_us``, ``p95_us``, ``p99_us``, if the client reports them."""


class Client(ABC, Generic[DatabaseT]):
    """One client program with its options."""

    family: ClassVar[str]
    """Programs of one family share their errors: they are left out together."""
    laps: ClassVar[bool] = False
    """Whether the work is done once and timed."""
    engine: ClassVar[str] = ""
    """Engine of a client that embeds its database."""
    servers: ClassVar[Collection[str]] = ()
    """Servers that the client works with; none if it embeds its database."""
    program: ClassVar[str]
    package: ClassVar[str]
    """Debian package of the program, or another way to get it."""
    defaults: ClassVar[Mapping[str, Option]]
    """Every option with its default."""
    of_data: ClassVar[Collection[str]] = ("scale",)
    """Options that change the data, not only the work on them."""
    choices: ClassVar[Mapping[str, Collection[str]]] = {}
    """All values of the options that have few."""

    def __init__(self, options: Mapping[str, Option], clients: int) -> None:
        if unknown := sorted(options.keys() - self.defaults.keys()):
            raise TierwiseError(
                f"{self.family} has no option {unknown[0]!r}", f"use {', '.join(self.defaults)}"
            )
        for name, value in options.items():
            _check(self.family, name, value, self.defaults[name])
            if name in self.choices and value not in self.choices[name]:
                raise TierwiseError(
                    f"{self.family}: option {name!r} is {value!r}", one_of(str(value), self.choices[name])
                )
        self.options = {**self.defaults, **options}
        self.clients = clients
        self.seed = 1
        """Of the random numbers of the next run, if the program takes a seed."""

    @property
    def dataset(self) -> str:
        """Equal for clients that work on the same data."""
        return "-".join([self.family, *map(self.text, self.of_data)])

    def missing(self) -> str | None:
        """Packages to install; ``None`` if nothing is missing."""
        if programs.find(self.program) is not None:
            return None
        return f"{self.program} is not installed ({self.package})"

    @abstractmethod
    def prepare(self, database: DatabaseT) -> None:
        """Fill a new database."""

    def warm_up(self, database: DatabaseT, seconds: float) -> None:
        """Run unmeasured work; nothing for a client that opens the database anew for each run."""

    @abstractmethod
    def run(self, database: DatabaseT, seconds: float) -> Load:
        """Work for ``seconds``, or through all laps."""

    def text(self, option: str) -> str:
        """An option as text."""
        return str(self.options[option])

    def number(self, option: str) -> int:
        """An option as a whole number."""
        return int(self.options[option])


def _check(family: str, name: str, value: Option, default: Option) -> None:
    if isinstance(default, str):
        if not (isinstance(value, str) and _WORD.fullmatch(value)):
            raise TierwiseError(
                f"{family}: option {name!r} is {value!r}", "give one word, as it has by default"
            )
        return
    whole = isinstance(default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        fix = f"give a {'whole ' * whole}number"
    elif not 0 <= value <= _LARGEST or (name in _ABOVE_ZERO and not value):
        fix = f"give a number {'above 0' if name in _ABOVE_ZERO else 'from 0'} to {_LARGEST:,.0f}"
    else:
        return
    raise TierwiseError(f"{family}: option {name!r} is {value!r}", fix)


def command(name: str, program: Sequence[str | Path] | Command, database: Database) -> str:
    """Run a client program to its end, as the database's user, and return its output."""
    log = database.outer / f"{name}.out"
    return finished(name, database.start_program(name, program, log), log)


def finished(name: str, process: processes.Process, log: Path) -> str:
    """Wait for a client program to end and return its output."""
    try:
        status = process.wait(_LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise TierwiseError(f"{name} did not end within {_LONGEST_S:g} s", "give it less to do") from None
    except BaseException:
        process.kill()
        raise
    text = read_end(log)
    if status != 0:
        raise TierwiseError(f"{name}: {' '.join(text.split())[-300:]}", "see what it says")
    return text


_PERCENTILES = {"p50_us": 0.5, "p95_us": 0.95, "p99_us": 0.99}


def percentiles_of(counts: Mapping[float, int]) -> dict[str, float]:
    """Percentiles of latencies in µs, each with its count."""
    total = sum(counts.values())
    if not total:
        return {}
    percentiles: dict[str, float] = {}
    seen = 0
    rising = iter(sorted(counts.items()))
    value = 0.0
    for name, share in _PERCENTILES.items():
        while seen < share * total:
            value, count = next(rising)
            seen += count
        percentiles[name] = value
    return percentiles
