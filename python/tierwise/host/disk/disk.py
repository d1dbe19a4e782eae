"""Emulated disks: a device model as a real block device, with real file systems on it.

A disk is cut into partitions. Each has its own block device, file system, mount and counters. All partitions
share one model: one head, one queue, one cache. Counters are totals since their last reset.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from tierwise.device_models.profiles import DeviceProfile
from tierwise.host import block_devices, ledger
from tierwise.host.clean import clean_before_operation
from tierwise.host.disk import partitions as disk_place
from tierwise.host.disk.attainable_rates import (
    attainable_rates,
    measure_path_latency_us,
    paced_path_latency_us,
)
from tierwise.host.disk.disk_config import (
    WHOLE,
    DiskFaults,
    Partition,
    PowerCutReport,
    Precondition,
    Transport,
    bad_sector_arguments,
    checked_partitions,
    failure_arguments,
    mount_points,
    require_empty_directory,
    require_possible_disk,
    slow_arguments,
    write_disk_config,
)
from tierwise.host.disk.disk_server import send_command, spawn_disk_server, wait_for_disk_server
from tierwise.host.disk.disk_teardown import control_socket, disk_directory, take_down_disk
from tierwise.model.errors import HostError, TierwiseError, os_errors
from tierwise.model.names import resolved_path
from tierwise.model.output_files import make_own_folder
from tierwise.results import AttainableRate, Latency, StrictModel


class PartitionStats(StrictModel):
    """Counters of one partition. Bytes and times are totals; depths are numbers of requests in flight."""

    name: str
    device: str
    mount: str
    file_system: str
    size_bytes: int
    reads: int
    writes: int
    flushes: int
    discards: int
    read_bytes: int
    write_bytes: int
    busy_s: float
    queue_depth_mean: float
    queue_depth_max: int
    read_latency: Latency | None
    write_latency: Latency | None
    flush_latency: Latency | None


class DiskStats(StrictModel):
    """Counters of one emulated disk.

    ``deadline_overrun`` is how long after its deadline the server answered each request; ``None`` before the
    first. ``transport`` is the way of requests to the server, and ``path_us`` its latency, which the server
    compensates. ``errors`` counts failed requests. ``unflushed_bytes`` were completed and would be lost if
    the power failed now.
    ``write_amplification`` is that of the model since the disk came up, or ``None`` if it has none.
    ``warnings`` list resources that a server needs to be on time and that the system refused. ``attainable``
    is what this machine can emulate of the device, measured when the disk came up.
    """

    name: str
    profile: str
    kind: str
    server_pid: int
    owner_pid: int
    elapsed_s: float
    cpu_s: float
    transport: str
    path_us: float
    queue_depth_mean: float
    queue_depth_max: int
    deadline_overrun: Latency | None
    errors: int
    unflushed_bytes: int
    write_amplification: float | None
    warnings: list[str]
    attainable: list[AttainableRate]
    partitions: dict[str, PartitionStats]

    @property
    def busy_depth(self) -> float:
        """Lower bound of the mean queue depth while busy, at least 1.

        Partitions may be busy at different times, so the device was busy for at most the sum of their times.
        """
        busy_s = min(self.elapsed_s, sum(part.busy_s for part in self.partitions.values()))
        return max(1.0, self.queue_depth_mean * self.elapsed_s / busy_s) if busy_s > 0 else 1.0

    @property
    def path_share(self) -> float | None:
        """Share of the requests' time that the path took, by ``attainable`` at the mean depth while busy."""
        served = [
            latency
            for part in self.partitions.values()
            for latency in (part.read_latency, part.write_latency, part.flush_latency)
            if latency is not None
        ]
        count = sum(latency.count for latency in served)
        if not count or not self.attainable:
            return None
        nearest = min(self.attainable, key=lambda rate: abs(math.log(rate.depth / self.busy_depth)))
        mean_us = sum(latency.count * latency.mean_us for latency in served) / count
        return nearest.longer_us / (nearest.longer_us + mean_us)


def disk_stats_from_answer(entry: ledger.LedgerEntry, answer: dict[str, Any]) -> DiskStats:
    """Combine the server's counters with the facts in the ledger."""
    facts, device = disk_place.disk_facts_of(entry), answer["stats"]
    placed = {partition.name: partition.model_dump() for partition in facts.partitions}
    partitions = {counted["name"]: {**counted, **placed[counted["name"]]} for counted in device["partitions"]}
    return DiskStats.model_validate(
        {
            **device,
            "name": entry.name,
            "profile": facts.profile,
            "kind": facts.model,
            "server_pid": facts.server and facts.server.pid,
            "owner_pid": entry.owner.pid,
            "warnings": answer["warnings"],
            "attainable": facts.attainable,
            "partitions": partitions,
        }
    )


__all__ = [
    "WHOLE",
    "DiskFaults",
    "DiskStats",
    "EmulatedDisk",
    "Partition",
    "PowerCutReport",
    "all_disks",
]


@dataclass
class EmulatedDisk:
    """An emulated disk that is up; as a context manager it takes itself down."""

    entry: ledger.LedgerEntry
    mounts: Mapping[str, Path]
    """Mount point of each partition."""
    _server: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def up(
        cls,
        name: str,
        profile: DeviceProfile,
        partitions: Sequence[Partition],
        mount_dir: Path,
        seed: int = 0,
        owner: Literal["caller", "server"] = "caller",
        *,
        path_us: float | None = None,
        precondition: Precondition = "fresh",
        lies_about_flush: bool = False,
        faults: DiskFaults | None = None,
        transport: Transport | None = None,
    ) -> Self:
        """Make a disk, its file systems and its mounts: all of them, or nothing.

        Each partition is mounted at ``mount_dir/NAME``; a single one called ``WHOLE``, at ``mount_dir``.

        Args:
            name: unique on this machine.
            partitions: in order of their sectors; on a hard disk the first are the outermost.
            mount_dir: a directory that is empty or not there yet.
            seed: seed of the model's random number generator.
            owner: after this process dies, :func:`tierwise.host.clean.clean` may take the disk down.
            path_us: latency of the path to the server to compensate; measured when left out.
            precondition: prior use of the device: none, every sector written once, or random overwrites
                until nothing changes any more.
            lies_about_flush: acknowledge flushes at once and keep the data volatile.
            faults: active from the moment that the disk is up.
            transport: the way of requests to the server; the fastest of this kernel when left out.

        Raises:
            TierwiseError: naming what is wrong or missing; nothing is left behind.
        """
        parts = checked_partitions(name, profile, partitions)
        require_possible_disk(profile, lies_about_flush, precondition)
        commands = (faults or DiskFaults()).commands(sum(part.size_bytes for part in parts))
        points = mount_points(parts, mount_dir.absolute())
        clean_before_operation(lambda _: None)
        require_empty_directory(mount_dir.absolute())
        home = disk_directory(name)
        described = {
            "profile": profile.name,
            "model": profile.kind,
            "rotational": disk_place.is_rotational(profile),
            "write_cache": profile.write_cache,
            "partitions": [],
        }
        entry = ledger.add("disk", name, home=str(home), made=[], **described)
        disk = cls(entry, points)
        try:
            start = {"seed": seed, "precondition": precondition, "lies_about_flush": lies_about_flush}
            disk._start_server(profile, parts, start, transport)
            disk._make(profile, parts, path_us)
            for command, arguments in commands:
                disk._ask(command, **arguments)
            if owner == "server":
                disk.entry = disk.entry.update(owner=ledger.ProcessIdentity(**disk.entry.facts["server"]))
        except BaseException:
            disk._undo()
            raise
        return disk

    @classmethod
    def find(cls, name: str) -> Self:
        """Find the disk of that name, made by any process."""
        entry = ledger.find("disk", name)
        if entry is None:
            known = ", ".join(entry.name for entry in ledger.entries("disk")) or "none is up"
            raise TierwiseError(f"there is no disk {name!r}", f"tierwise disk list ({known})")
        return cls(entry, _mounts_of(entry))

    def set_timing(self, on: bool) -> None:
        """Answer at the model's pace (``True``) or at once (``False``), for instance while tables load."""
        self._ask("timing", on=on)

    def stats(self) -> DiskStats:
        """Counters since the last reset.

        Raises:
            TierwiseError: if the server does not answer, or the disk is still being made.
        """
        return disk_stats_from_answer(self._refreshed(), self._ask("stats"))

    def reset_stats(self) -> None:
        """Start all counters from zero."""
        self._ask("reset_stats")

    def cut(self, *, keep_random: bool = False, seed: int = 0, remount: bool = True) -> PowerCutReport:
        """Cut the power, then serve the data left on the medium.

        Flushed data is kept. A drive without a volatile write cache also keeps completed writes. All other
        writes are lost, or with ``keep_random`` a random subset of their sectors is kept.
        Requests in flight fail, and open files give errors from now on. Then each partition gets
        a new block device and is mounted at the same place, where its file system recovers.

        Args:
            keep_random: keep a subset of the unflushed sectors, which may tear and reorder writes.

        Raises:
            TierwiseError: if a file system cannot be mounted again.
        """
        report = PowerCutReport.model_validate(
            self._ask("cut", keep_random=seed if keep_random else None)["cut"]
        )
        if remount:
            self.remount()
        return report

    def remount(self) -> None:
        """Detach all partitions from their users and mount them again.

        Raises:
            TierwiseError: if a file system cannot be mounted; the others are mounted.
        """
        with ledger.hold_lock():
            placed = self._refreshed().facts["partitions"]
            disk_place.release_partitions(self._home, placed)
            placed = disk_place.reattach_partitions(self._home, placed, self._reported)
            self.entry = self.entry.update(partitions=placed)
            failed = disk_place.mount_reattached(placed)
        if failed and not all(block_devices.is_readable(Path(part["device"])) for part in placed):
            raise HostError(
                f"{failed[0].message}: disk {self.entry.name!r} has failed, or cannot be read there",
                f"tierwise disk down {self.entry.name}",
            )
        if failed:
            raise failed[0]

    def fail(self, *, after_s: float | None = None, after_requests: int | None = None) -> None:
        """Fail the device, at once or later: all requests get errors until the disk is taken down."""
        self._ask("fail", **failure_arguments(after_s, after_requests))

    def slow(self, factor: float, for_s: float) -> None:
        """Multiply all service times of the device by ``factor`` for ``for_s`` seconds."""
        self._ask("slow", **slow_arguments(factor, for_s))

    def make_unreadable(self, first: int, last: int, partition: str | None = None) -> None:
        """Make reads of sectors of a partition fail until the sectors are written.

        Args:
            first: in sectors of 512 bytes from the start of the partition.
            last: last unreadable sector (inclusive).
            partition: its name; the first when left out.
        """
        placed = self._refreshed().facts["partitions"]
        names = [part["name"] for part in placed]
        name = names[0] if partition is None else partition
        if name not in names:
            raise TierwiseError(
                f"disk {self.entry.name!r} has no partition {name!r}", f"use {', '.join(names)}"
            )
        index = names.index(name)
        start_bytes = sum(part["size_bytes"] for part in placed[:index])
        self._ask("unreadable", **bad_sector_arguments(first, last, placed[index], start_bytes))

    def down(self) -> None:
        """Unmount and remove everything. No error if the server has died or everything is gone.

        Raises:
            TierwiseError: if another process owns the disk, or a process still uses it.
        """
        owner = self.entry.owner
        server = self.entry.facts.get("server") or {}  # none yet while the disk is being made
        if owner.alive and owner.pid not in (ledger.ProcessIdentity.mine().pid, server.get("pid")):
            raise TierwiseError(
                f"disk {self.entry.name!r} belongs to process {owner.pid}", "end that process"
            )
        with ledger.hold_lock():
            self._undo()

    def __enter__(self) -> Self:
        """Give the disk."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the disk down."""
        self.down()

    def _ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        disk_place.disk_facts_of(self.entry)  # before anything that needs them afterwards
        return send_command(self._control_socket, command, **arguments)

    def _set_path(self, path_us: float) -> None:
        self._ask("path", us=path_us)

    def _refreshed(self) -> ledger.LedgerEntry:
        """The current ledger entry: another process may have cut the power."""
        self.entry = ledger.find("disk", self.entry.name) or self.entry
        facts = disk_place.disk_facts_of(self.entry)
        if not facts.partitions or facts.server is None:
            raise TierwiseError(f"disk {self.entry.name!r} is still being made", "ask again in a second")
        return self.entry

    @property
    def _reported(self) -> block_devices.ReportedCaches:
        facts = self.entry.facts
        return block_devices.ReportedCaches(facts["rotational"], facts["write_cache"])

    @property
    def _home(self) -> Path:
        return Path(self.entry.facts["home"])

    @property
    def _control_socket(self) -> Path:
        return control_socket(self._home)

    def _undo(self) -> None:
        # An interrupt may arrive after the ledger is written and before this process gets the entry.
        take_down_disk(ledger.find("disk", self.entry.name) or self.entry)

    def _make(self, profile: DeviceProfile, parts: Sequence[Partition], path_us: float | None) -> None:
        self.set_timing(False)
        self._make_directories()
        devices = disk_place.attach_partitions(self._home, [part.name for part in parts], self._reported)
        placed = [
            disk_place.make_mounted_partition(part, device, self.mounts[part.name])
            for part, device in zip(parts, devices, strict=True)
        ]
        self.entry = self.entry.update(partitions=placed)
        device = devices[0]
        compensated_us = measure_path_latency_us(device) if path_us is None else path_us
        self._set_path(compensated_us)
        self.set_timing(True)
        if path_us is None:
            compensated_us = paced_path_latency_us(profile, device, compensated_us, self._set_path)
        rates = [rate.model_dump() for rate in attainable_rates(profile, device)]
        self.entry = self.entry.update(path_us=compensated_us, attainable=rates)
        self.reset_stats()

    def _start_server(
        self,
        profile: DeviceProfile,
        parts: Sequence[Partition],
        start: dict[str, Any],
        transport: Transport | None,
    ) -> None:
        config = write_disk_config(self._home, self.entry.name, profile, parts, start, transport)
        log = self._home / "log"
        self._server = spawn_disk_server(config, log)
        identity = ledger.ProcessIdentity.of(self._server.pid)
        if identity is not None:
            self.entry = self.entry.update(server=vars(identity))
        wait_for_disk_server(self._server, self._control_socket, log, f"disk {self.entry.name!r}")

    def _make_directories(self) -> None:
        # As the kernel names them: a power cut looks for what is mounted there. One may be a link to nowhere.
        real = {name: resolved_path(point) for name, point in self.mounts.items()}
        wanted = {parent for point in real.values() for parent in (point, *point.parents)}
        missing = sorted(path for path in wanted if not path.exists())
        self.entry = self.entry.update(made=[str(path) for path in missing])
        for path in (*self.mounts.values(), *real.values()):
            with os_errors(path, "name another mount point"):
                make_own_folder(path, 0o755)
        self.mounts = real


def _mounts_of(entry: ledger.LedgerEntry) -> dict[str, Path]:
    """Mount point of each partition; an entry may be of another version of tierwise."""
    try:
        return {part["name"]: Path(part["mount"]) for part in entry.facts["partitions"]}
    except (KeyError, TypeError) as error:
        problem = f"{entry.path}: damaged entry of the ledger ({error})"
        owner = f"end process {entry.owner.pid}, then " if entry.owner.alive else ""
        raise TierwiseError(problem, f"{owner}tierwise clean") from None


class SilentDisk(StrictModel):
    """A disk without counters: it is still being made, or its server does not answer."""

    name: str
    mounts: list[Path]
    """Where it is mounted."""
    problem: str
    """Why it gives no counters."""


def all_disks() -> tuple[list[DiskStats], list[SilentDisk]]:
    """Counters of every disk whose server answers, and the other disks."""
    answering: list[DiskStats] = []
    silent: list[SilentDisk] = []
    for entry in ledger.entries("disk"):
        points: list[Path] = []
        try:
            points = list(_mounts_of(entry).values())
            answering.append(EmulatedDisk.find(entry.name).stats())
        except TierwiseError as error:
            silent.append(SilentDisk(name=entry.name, mounts=points, problem=str(error)))
    return answering, silent
