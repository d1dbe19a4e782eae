"""Interface of a client program in a validation, and the fetching of those that no package has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from tierwise.host import processes, programs
from tierwise.host.processes import read_log_end
from tierwise.host.programs import FinishedProgram, PrivateDirectory
from tierwise.host.python_process import ProcessCommand
from tierwise.host.users import server_user
from tierwise.lab.validation.servers.case_database import CaseDatabase
from tierwise.model.errors import TierwiseError
from tierwise.model.names import unknown_name_fix
from tierwise.model.output_files import make_own_folder

DatabaseT = TypeVar("DatabaseT", bound=CaseDatabase)
Option = str | int | float
_LONGEST_S = 3600.0
_LARGEST = 1e9
_ABOVE_ZERO = frozenset({"scale", "tables", "value", "repeat"})
"""Options of which 0 means no work."""
_WORD = re.compile(r"[A-Za-z0-9_,-]+")
"""Allowed text options: they become parts of statements, program arguments and file names."""


@dataclass(frozen=True)
class ClientLoad:
    """Work of a client in one measured period."""

    elapsed_s: float
    transactions: int | None = None
    """Number of transactions; ``None`` for laps."""
    latency_us: dict[str, float] = field(default_factory=dict)
    """``p50_us``, ``p95_us``, ``p99_us``, if the client reports them."""


class ValidationClient(ABC, Generic[DatabaseT]):
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
                    f"{self.family}: option {name!r} is {value!r}",
                    unknown_name_fix(str(value), self.choices[name]),
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
        if programs.find_program(self.program) is not None:
            return None
        return f"{self.program} is not installed ({self.package})"

    @abstractmethod
    def prepare(self, database: DatabaseT) -> None:
        """Fill a new database."""

    def warm_up(self, database: DatabaseT, seconds: float) -> None:
        """Run unmeasured work; nothing for a client that opens the database anew for each run."""

    @abstractmethod
    def run(self, database: DatabaseT, seconds: float) -> ClientLoad:
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


def run_client_program(
    name: str, program: Sequence[str | Path] | ProcessCommand, database: CaseDatabase
) -> str:
    """Run a client program to its end, as the database's user, and return its output."""
    log = database.outer / f"{name}.out"
    return wait_for_client_program(name, database.start_program(name, program, log), log)


def wait_for_client_program(name: str, process: processes.Process, log: Path) -> str:
    """Wait for a client program to end and return its output."""
    try:
        status = process.wait(_LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise TierwiseError(f"{name} did not end within {_LONGEST_S:g} s", "give it less to do") from None
    except BaseException:
        process.kill()
        raise
    text = read_log_end(log)
    if status != 0:
        raise TierwiseError(f"{name}: {' '.join(text.split())[-300:]}", "see what it says")
    return text


_PERCENTILES = {"p50_us": 0.5, "p95_us": 0.95, "p99_us": 0.99}


def latency_percentiles(counts: Mapping[float, int]) -> dict[str, float]:
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


# Programs that tierwise fetches: its own account does it, and the caller keeps a copy in its cache.

_NETWORK = ("GOPROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy")


def caller_cache_directory(name: str) -> Path:
    """A private directory of the caller."""
    return Path.home() / ".cache" / "tierwise" / name


def network_variables() -> Mapping[str, str]:
    """The caller's variables that say how to reach the network."""
    return {name: os.environ[name] for name in _NETWORK if name in os.environ}


def fetch_program(kept: Path, made: str, get: Callable[[PrivateDirectory], FinishedProgram]) -> str | None:
    """Fetch a program or a directory of programs, unless it was; give the reason of a failure.

    ``get`` fetches it as the account, to the path ``made`` below the account's directory.
    """
    if kept.exists():
        return None
    try:
        return _fetch(kept, made, get)
    except TierwiseError as error:
        return error.message


def _fetch(kept: Path, made: str, get: Callable[[PrivateDirectory], FinishedProgram]) -> str | None:
    home = PrivateDirectory("fetch-home", server_user())
    try:
        done = get(home)
        if done.status != 0:
            return done.last_line
        make_own_folder(kept.parent)
        draft = kept.with_name(f"{kept.name}.part")
        shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)
        programs.copy_program(home.own / made, draft)
        draft.rename(kept)
    finally:
        home.remove()
    return None
