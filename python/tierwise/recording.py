"""Recordings: what one run did, as a folder of tables. docs/recording.md tells what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from tierwise import _core
from tierwise.roles import Role

if TYPE_CHECKING:
    import duckdb

TABLES = ("threads", "files", "states", "calls", "blocks")
"""Names of the tables; each is a file, ``NAME.parquet``."""
_FOREIGN_CPU_SHARE = 0.05
"""Processor time of others beyond which a recording is said to be disturbed."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Machine(_Part):
    """The machine of the recorded run."""

    cores: int
    memory_bytes: int
    processes_bytes: int = 0
    """What the recorded processes held of it themselves, page cache aside; 0 where that was not seen."""
    processor: str
    kernel: str


class Burst(_Part):
    """A stretch of time in which every event was taken."""

    start_ns: int
    end_ns: int
    log_delay_us: float


class Device(_Part):
    """A block device that held files of the database."""

    name: str
    major: int
    minor: int
    mount: str | None
    roles: list[Role]
    shared: int
    """Partitions with the same number share one physical device."""
    first_sector: int
    sectors: int
    profile: str | None
    """TOML, if the device was an emulated one."""
    write_cache: bool


class Losses(_Part):
    """Events that were taken, and those that the kernel dropped."""

    recorded_events: int
    lost_events: int


class Cost(_Part):
    """What recording cost: the rate of work in bursts over that between them, with its 95 % interval."""

    rate_ratio: float
    rate_ratio_low: float
    rate_ratio_high: float
    event_cpu_ns: float


class Check(_Part):
    """One thing that the recording checked of itself."""

    name: str
    passed: bool
    detail: str


class About(_Part):
    """What a recording says of itself: ``about.json``."""

    version: int
    started_at: str
    tierwise: str
    engine: str
    engine_version: str | None
    settings: dict[str, str]
    machine: Machine
    duration_s: float
    bursts: list[Burst]
    devices: list[Device]
    losses: Losses
    cost: Cost | None
    transactions: int | None
    counters: dict[str, int] = {}
    """What the engine's own counters rose by; empty if they were not read."""
    data_directory_bytes: int | None = None
    """All files of the engine's data directory, if that is known."""
    foreign_cpu_share: float
    stolen_cpu_share: float = 0.0
    """Processor time that the hypervisor took during bursts; 0 in older recordings."""
    checks: list[Check]
    warnings: list[str]


@dataclass(frozen=True)
class Recording:
    """A recording on disk."""

    path: Path
    about: About

    @classmethod
    def open(cls, path: Path, *, whole: bool = False) -> Recording:
        """Open a recording.

        Args:
            path: its folder.
            whole: read and check every table too, which takes seconds for ten million rows.

        Raises:
            TierwiseError: naming the file, if it is no recording, newer than this program, truncated or
                damaged.
        """
        return cls(path, About.model_validate_json(_core.read_recording(path, whole)))

    @property
    def warnings(self) -> list[str]:
        """Sentences that every result from this recording repeats."""
        about = self.about
        found = [*about.warnings]
        if about.losses.lost_events:
            lost, taken = about.losses.lost_events, about.losses.recorded_events
            share = lost / (lost + taken)
            found.append(f"the kernel dropped {lost} of {lost + taken} events ({share:.2%}) while recording")
        if about.foreign_cpu_share > _FOREIGN_CPU_SHARE:
            share = about.foreign_cpu_share
            found.append(f"other programs used {share:.0%} of the processors while recording")
        found += [f"{check.name}: {check.detail}" for check in about.checks if not check.passed]
        return list(dict.fromkeys(found))

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection in which each table of the recording is a view."""
        import duckdb  # slow to import, and only queries need it

        connection = duckdb.connect()
        for table in TABLES:
            file = str(self.path / f"{table}.parquet")
            connection.read_parquet(file).create_view(table)
        return connection
