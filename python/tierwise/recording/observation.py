"""Observations: what a server's own views told over SQL, as one file. docs/how-to/observe.md describes them.

Sessions' states were sampled, counters read before and after. No event of the kernel is in it, so it says
what sessions waited for and not what devices did.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.input_files import parse_as_model, parse_json, read_text
from tierwise.model.output_files import open_output_file
from tierwise.model.placement import Role
from tierwise.recording.breakdown import Breakdown, ClassTime, Part, TimeSlice
from tierwise.recording.recording import (
    OBSERVATION_FILE,
    EventLosses,
    RecordedMachine,
    Recording,
    RecordingMetadata,
    Started,
)
from tierwise.results.measurements import StrictModel, WaitClass

VERSION = 1
_MOST_BYTES = 4 << 20
_MOST_SESSIONS = 100_000
_FIX = "name a folder that tierwise observe wrote"
_ABOUT_VERSION = 1

PARTS: dict[WaitClass, Part] = {
    "cpu": "cpu",
    "log_sync": "log_device",
    "log_lock": "log_queue",
    "data_read": "read",
    "data_write": "write",
    "lock": "lock",
    "client": "client",
    "other": "other",
}
"""Class of a sampled state -> the part of a session's time that a recording calls it."""

Count = Annotated[int, Field(ge=0, le=1 << 62)]
Figure = Annotated[float, Field(ge=0.0, le=1e15, allow_inf_nan=False)]


class ObservedWait(StrictModel):
    """Sessions in one state."""

    event: str = Field(max_length=200)
    """As the engine names it, such as ``IO:WalSync``; a session without a wait has its state, ``active``."""
    wait_class: WaitClass
    role: Role | None = None
    """Role of the file that is waited for, if the event tells it."""
    sessions: Figure
    """Mean number over the ticks."""


def _require_few_sessions(waits: list[ObservedWait]) -> list[ObservedWait]:
    if (sessions := sum(wait.sessions for wait in waits)) > _MOST_SESSIONS:
        raise ValueError(f"{sessions:.0f} sessions, above {_MOST_SESSIONS}")
    return waits


class Observation(StrictModel):
    """What was observed: ``observation.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["observation"] = Field(default="observation", alias="schema")
    schema_version: Literal[1] = 1
    started_at: Annotated[Started, Field(max_length=40)]
    tierwise: str = Field(max_length=40)
    engine: str = Field(max_length=40)
    engine_version: str | None = Field(default=None, max_length=80)
    duration_s: Annotated[float, Field(gt=0.0, le=1e8, allow_inf_nan=False)]
    ticks: Annotated[int, Field(ge=1, le=10**9)]
    """Number of times that the sessions were looked at."""
    rate_hz: Figure
    """Ticks a second that were reached."""
    waits: Annotated[list[ObservedWait], Field(max_length=10_000), AfterValidator(_require_few_sessions)]
    sampling_errors: dict[WaitClass, Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]] = {}
    """Class -> half width of the 95 % interval of its share of the sessions' time."""
    cores: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Of the server, as its user gave them: SQL does not tell."""
    running: Figure = 0.0
    """Mean over ticks of the sessions without a wait, counted up to the number of cores if it is known."""
    counted_s: Figure = 0.0
    """Time for which ``counts`` are known."""
    counts: dict[str, Count] = {}
    """Increase of counters in that time; one that could not be read is absent."""
    sizes: dict[Role, Count] = {}
    """Bytes of the files of each role, from the catalogue."""
    data_directory_bytes: Count | None = None
    page_bytes: Annotated[int, Field(ge=512, le=1 << 20)] = 8192
    devices: dict[Role, Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,80}$")]] = {}
    """Role -> shipped profile of the device that it lies on, as its user gave it."""
    sampling_cost: Figure | None = None
    """Time that the server worked on the samples, as a share of one core."""
    limits: list[str] = Field(default=[], max_length=100)
    """What could not be observed, as sentences."""

    @property
    def sessions(self) -> float:
        """Mean number of sessions."""
        return sum(wait.sessions for wait in self.waits)

    @property
    def transactions(self) -> int | None:
        """Transactions that ended in ``counted_s``; ``None`` if that is not known."""
        return self.counts.get("transactions") if self.counted_s > 0 else None

    @property
    def about(self) -> RecordingMetadata:
        """The metadata that it shares with a recording; what SQL does not tell is absent or 0."""
        return RecordingMetadata(
            version=_ABOUT_VERSION,
            started_at=self.started_at,
            tierwise=self.tierwise,
            engine=self.engine,
            engine_version=self.engine_version,
            settings={},
            machine=RecordedMachine(cores=self.cores or 0, memory_bytes=0, processor="", kernel=""),
            duration_s=self.duration_s,
            bursts=[],
            devices=[],
            losses=EventLosses(recorded_events=0, lost_events=0),
            cost=None,
            transactions=None,
            counters=self.counts,
            data_directory_bytes=self.data_directory_bytes,
            role_bytes=self.sizes,
            foreign_cpu_share=0.0,
            checks=[],
            warnings=self.limits,
        )

    @property
    def warnings(self) -> list[str]:
        """Sentences that every result from it repeats."""
        return self.limits

    @classmethod
    def open(cls, path: Path) -> Observation:
        """Open an observation; refuse one that is damaged, or of a newer tierwise."""
        file = path / OBSERVATION_FILE
        text = read_text(file, _FIX, most_bytes=_MOST_BYTES, in_folder=True)
        content = parse_json(text, str(file), _FIX)
        version = content.get("schema_version") if isinstance(content, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise TierwiseError(
                f"{file} has schema_version {version}, this tierwise reads up to {VERSION}",
                "use a newer tierwise",
            )
        return parse_as_model(cls, content, str(file), "observe again")

    def sessions_in(self, *classes: WaitClass, role: Role | None = None) -> float:
        """Mean number of sessions in some classes, of one role if it is given."""
        return sum(
            wait.sessions
            for wait in self.waits
            if wait.wait_class in classes and (role is None or wait.role == role)
        )

    def break_down(self) -> Breakdown:
        """The sessions' time in the form of a recording's breakdown, which has no device in it."""
        total = self.sessions
        slices = [
            TimeSlice(
                part=PARTS[wait.wait_class],
                role=wait.role,
                time_s=wait.sessions * self.duration_s,
                share=wait.sessions / total,
            )
            for wait in self.waits
            if total > 0
        ]
        sessions = ClassTime.model_validate(
            {
                "class": "session",
                "threads": round(total),
                "lived_s": total * self.duration_s,
                "slices": slices,
            }
        )
        return Breakdown(
            span_s=self.duration_s,
            bursts=1,
            cores=self.cores or 0,
            busy_share=self.running / self.cores if self.cores else 0.0,
            classes=[sessions] if total > 0 else [],
            roles=[],
            files=[],
            sum_error=0.0,
        )


def open_recorded_source(path: Path) -> Recording | Observation:
    """Open a folder: an observation if it has the file of one, else a recording."""
    return Observation.open(path) if os.path.lexists(path / OBSERVATION_FILE) else Recording.open(path)


def write_observation(folder: Path, observation: Observation) -> None:
    """Write an observation into an existing empty folder; only its owner may read it."""
    path = folder / OBSERVATION_FILE
    with os_errors(path, "name a new directory with room"), open_output_file(path, "new") as file:
        file.write(observation.model_dump_json(by_alias=True, indent=1).encode())
