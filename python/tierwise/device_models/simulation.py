"""Simulate a device: its model, driven on virtual time with the requests of a file or of a pattern."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tierwise import _core
from tierwise.device_models.profiles import Profile
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import open_file
from tierwise.results.measurements import Latency, Record


class OpFigures(Latency):
    """Figures of one kind of request: service times, from arrival to completion, and rates."""

    per_second: float
    """Requests a second of virtual time."""
    mb_per_s: float
    """Transferred, in 10^6 bytes a second of virtual time."""


class Comparison(Record):
    """The model's service times compared with the measured ones of the requests."""

    measured_mean_us: float
    model_mean_us: float
    demerit: float
    """Root mean square distance between the two distributions, as a share of the measured mean
    (Ruemmler and Wilkes, IEEE Computer 27(3), 1994)."""
    each: float
    """Root mean square difference request by request, as a share of the measured mean."""


class Simulation(Latency):
    """Figures of a simulation; those inherited are of all requests, from arrival to completion."""

    virtual_s: float
    """From the first arrival to the last completion."""
    iops: float
    """Reads and writes a second of virtual time."""
    mb_per_s: float
    """Read and written, in 10^6 bytes a second of virtual time."""
    busy_share: float
    """Share of virtual time with a request outstanding."""
    host_sectors: int
    """Written by requests."""
    medium_sectors: int
    """Written to the medium, without sectors still in a cache at the end."""
    write_amplification: float | None
    """Sectors to the medium for each written by requests; ``None`` if none were."""
    erases: int
    """Erase blocks erased."""
    cpu_s: float
    """CPU time of the simulating thread, without that of reading and writing files."""
    requests_per_cpu_s: float
    """Requests simulated a second of that time."""
    ops: dict[str, OpFigures]
    """By kind: ``read``, ``write``, ``flush``, ``discard``, those that occurred."""
    compared: Comparison | None
    """Against measured times, if the file has a column ``service_us``."""


@dataclass(frozen=True)
class Job:
    """What to simulate: either ``requests`` or ``preset``.

    Attributes:
        requests: a CSV file, plain or compressed with gzip: ``op,lbn,sectors[,think_ms][,arrival_us]``.
        preset: name of a pattern, such as ``randread-4k``.
        count: how many requests of the preset; 100,000 if neither this nor ``virtual_s`` is given.
        virtual_s: seconds of virtual time that the preset runs.
        depth: requests outstanding at a time; the preset's own or 1 if ``None``.
        open: requests arrive at ``arrival_us``, instead of each after a completion and its ``think_ms``.
        precondition: ``fresh``, ``sequential``, ``random`` or ``random:SHARE``.
        seed: seed of the random number generator.
        times: CSV file to write the time of each request to.
    """

    requests: Path | None = None
    preset: str | None = None
    count: int | None = None
    virtual_s: float | None = None
    depth: int | None = None
    open: bool = False
    precondition: str = "fresh"
    seed: int = 0
    times: Path | None = None


def simulate(profile: Profile, job: Job) -> Simulation:
    """Simulate a job on a device of this profile.

    Raises:
        TierwiseError: an invalid option, or an unusable file, with its line and column.
    """
    return simulate_core(_core.parse_profile(profile.text, str(profile.file), profile.library), job)


def simulate_core(core: _core.Profile, job: Job) -> Simulation:
    """The same on a compiled profile."""
    with nullcontext() if job.times is None else _times_file(job.times) as times:
        job = replace(job, times=times)
        return Simulation.model_validate_json(
            _core.simulate_device(core, json.dumps(asdict(job), default=str))
        )


@contextmanager
def _times_file(path: Path) -> Iterator[Path]:
    """A path of the file's descriptor, so that nobody else can turn it elsewhere."""
    try:
        with open_file(path, "append", 0o666) as file:
            yield Path(f"/proc/self/fd/{file.fileno()}")
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "name a file that can be written") from error
