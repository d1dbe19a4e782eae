"""The devices of one run: created or found for a placement, with counters per role."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tierwise.device_models import profiles
from tierwise.device_models.profiles import DeviceProfile
from tierwise.host import ledger
from tierwise.host.disk.disk import DiskStats, EmulatedDisk, Partition
from tierwise.host.disk.disk_config import block_aligned_partitions, require_possible_disk
from tierwise.host.users import server_user
from tierwise.lab.studies.runner.engine_compatibility import is_role_placed
from tierwise.lab.studies.runner.real_devices import DiskCounters, RealDevices, real_directory
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.model.errors import TierwiseError
from tierwise.model.numbers import percent_text
from tierwise.model.output_files import make_new_folder
from tierwise.model.placement import Role
from tierwise.results import DeadlineOverrun, DeviceInfo, RoleIo

_LATENESS_BOUND_SHARE = 0.10
"""Maximum deadline overrun of a device, as a share of the run; beyond it the run's time is invalid.

Concurrent late requests count once.
"""

_SHORTEST_S = 1e-6


@dataclass(frozen=True)
class DeviceIoCounts:
    """I/O of the devices during the measured phase. ``problems`` are the reasons why it is invalid."""

    io: dict[Role, RoleIo]
    devices: list[DeviceInfo]
    cpu_s: float | None
    problems: list[str]


@dataclass
class RunStorage:
    """Every role's directory, on the device that the placement names.

    An emulated device has one partition per role, so that each role has its own counters while
    all of them share one head, one queue and one cache. For real devices see :class:`RealDevices`.
    """

    role_devices: Mapping[Role, str]
    places: dict[Role, Path] = field(default_factory=dict)
    emulated: dict[str, EmulatedDisk] = field(default_factory=dict)
    profiles: dict[str, DeviceProfile] = field(default_factory=dict)
    lying: set[str] = field(default_factory=set)
    """Emulated devices that do not obey flushes."""
    real: RealDevices = field(default_factory=lambda: RealDevices({}, {}))
    _opened_at: dict[Role, int | None] = field(default_factory=dict)
    _makers: dict[str, Callable[[], EmulatedDisk]] = field(default_factory=dict)

    def replace(self, device: str) -> None:
        """Put a new, blank device in the place of an emulated one, whose data are gone."""
        self.take_down(device)
        self.emulated[device] = self._makers[device]()

    def take_down(self, device: str) -> None:
        """Take down what is now in the place of an emulated device."""
        self.emulated[device].down()

    def set_timing(self, on: bool) -> None:
        """Make emulated devices take their modelled time (``True``) or complete requests at once."""
        for disk in self.emulated.values():
            disk.set_timing(on)

    def start_counting(self) -> None:
        """Begin the measured phase: every counter reads zero from here."""
        for disk in self.emulated.values():
            disk.reset_stats()
        self.real.start()

    def stop_counting(self, elapsed_s: float) -> DeviceIoCounts:
        """Counts since :meth:`start_counting`, ``elapsed_s`` seconds ago."""
        real_io, real_infos = self.real.stop(elapsed_s)
        stats = {name: disk.stats() for name, disk in self.emulated.items()}
        infos = [
            self._emulated_info(name, deadline_overrun_of(status, elapsed_s)).changed(
                write_amplification=status.write_amplification,
                attainable=status.attainable,
                path_share=status.path_share,
            )
            for name, status in stats.items()
        ]
        infos += real_infos
        io = real_io | {
            Role(partition.name): RoleIo.model_validate(
                {"device": name, **partition.model_dump(include=set(RoleIo.model_fields))}
            )
            for name, disk in stats.items()
            for partition in disk.partitions.values()
        }
        cpu_s = sum(disk.cpu_s for disk in stats.values()) if stats else None
        return DeviceIoCounts(
            io, infos, cpu_s, [problem for info in infos for problem in device_problems(info)]
        )

    def written_bytes(self) -> dict[Role, int | None]:
        """Bytes that reached the block device under each role's place since it was opened.

        The kernel counts them: on a real device they include all writers; ``None`` without a block device.
        """
        return {
            role: None if now is None else now - (self._opened_at.get(role) or 0)
            for role, now in self._total_written_bytes().items()
        }

    def _total_written_bytes(self) -> dict[Role, int | None]:
        counters = {role: DiskCounters.under(place) for role, place in self.places.items()}
        return {role: None if counter is None else counter.write_bytes for role, counter in counters.items()}

    def broken(self) -> list[str]:
        """Messages about emulated devices that failed requests or whose server is gone."""
        broken_roles = []
        for name, disk in self.emulated.items():
            try:
                errors = disk.stats().errors
            except TierwiseError as error:
                broken_roles.append(f"device {name}: {error.message}")
                continue
            if errors:
                broken_roles.append(f"device {name} failed {errors} requests")
        return broken_roles

    def describe(self) -> list[DeviceInfo]:
        """The devices without counters, for a run that was not measured."""
        emulated = [self._emulated_info(name, None) for name in self.emulated]
        return emulated + self.real.describe()

    def server_pids(self) -> list[int]:
        """Pids of the processes that serve the emulated devices."""
        return [disk.stats().server_pid for disk in self.emulated.values()]

    def roles_on(self, device: str) -> list[Role]:
        """Roles that live on one device."""
        return [role for role, name in self.role_devices.items() if name == device]

    def _emulated_info(self, name: str, deadline_overrun: DeadlineOverrun | None) -> DeviceInfo:
        profile = self.profiles[name]
        return DeviceInfo(
            name=name,
            kind=profile.kind,
            profile=profile.name,
            own_profile=profile.is_own,
            digest=profile.own_digest,
            write_cache=profile.write_cache,
            lies_about_flush=name in self.lying,
            roles=self.roles_on(name),
            deadline_overrun=deadline_overrun,
        )


def open_storage(
    study: Study, plan: RunPlan, roles: Collection[Role], undo: ExitStack, *, by_role: bool = False
) -> RunStorage:
    """Bring up every device that the placement uses, partitioned by the engine's ``roles``.

    Args:
        study: names the devices and the sizes of their partitions.
        plan: the placement, and the seed of the models.
        undo: takes down everything that was brought up.
        by_role: count requests per role on a shared real device, at a small cost.
    """
    placed = [role for role in sorted(roles) if is_role_placed(role, plan.placement)]
    storage = RunStorage({role: plan.placement.device_of(role) for role in placed})
    # Whoever enters a mount keeps it from being unmounted: only the engines' account may.
    mounts = undo.enter_context(ledger.passage_directory("mnt", server_user(), ledger.run_dir()))
    real: dict[str, Path] = {}
    for name in dict.fromkeys(storage.role_devices.values()):
        if study.devices[name].path is not None:
            real[name] = _use_real(storage, study, name, undo)
        else:
            _bring_up(storage, study, name, plan.seed, mounts, undo)
    storage.real = RealDevices(
        real,
        {role: (name, storage.places[role]) for role, name in storage.role_devices.items() if name in real},
    )
    if by_role:
        storage.real.tell_roles_apart(undo)
    storage._opened_at = storage._total_written_bytes()
    return storage


def check_devices(study: Study, roles: Collection[Role]) -> None:
    """Check the devices of all placements as :func:`open_storage` would, without making any."""
    for placement in study.placements.values():
        placed = [role for role in sorted(roles) if is_role_placed(role, placement)]
        for name in dict.fromkeys(map(placement.device_of, placed)):
            spec = study.devices[name]
            if spec.path is not None:
                real_directory(name, spec.path)
                continue
            profile = _profile(study, name)
            require_possible_disk(profile, spec.lies_about_flush, "fresh")
            parts = [role for role in placed if placement.device_of(role) == name]
            sized = [Partition(str(role), study.size_bytes(role)) for role in parts]
            block_aligned_partitions(f"{study.name}-{name}", profile, sized)


def _profile(study: Study, name: str) -> DeviceProfile:
    profile = profiles.load_profile(str(study.devices[name].profile))
    return profiles.array_with_failed_member(profile) if study.devices[name].failed_member else profile


def _bring_up(storage: RunStorage, study: Study, name: str, seed: int, mounts: Path, undo: ExitStack) -> None:
    lies = study.devices[name].lies_about_flush
    profile = _profile(study, name)
    partitions = [Partition(str(role), study.size_bytes(role)) for role in storage.roles_on(name)]
    mount_dir = mounts / name
    make_new_folder(mount_dir, 0o711)

    def make() -> EmulatedDisk:
        return EmulatedDisk.up(
            f"{mounts.name}-{name}", profile, partitions, mount_dir, seed=seed, lies_about_flush=lies
        )

    disk = storage.emulated[name] = make()
    undo.callback(storage.take_down, name)
    if lies:
        storage.lying.add(name)
    storage._makers[name] = make
    storage.profiles[name] = profile
    storage.places |= {Role(partition): path for partition, path in disk.mounts.items()}


def _use_real(storage: RunStorage, study: Study, name: str, undo: ExitStack) -> Path:
    given = real_directory(name, str(study.devices[name].path))
    directory = undo.enter_context(ledger.make_directory("tierwise", parent=given, mode=0o711))
    for role in storage.roles_on(name):
        storage.places[role] = directory / role
        make_new_folder(storage.places[role], 0o711)
    return given


def deadline_overrun_of(stats: DiskStats, elapsed_s: float) -> DeadlineOverrun | None:
    """Deadline overrun of a disk, and its maximum effect on a run of ``elapsed_s`` seconds.

    Queued requests are late at the same time.
    """
    late = stats.deadline_overrun
    if late is None:
        return None
    return DeadlineOverrun(
        p50_us=late.p50_us,
        p99_us=late.p99_us,
        max_us=late.max_us,
        share=late.count * late.mean_us / 1e6 / stats.busy_depth / max(elapsed_s, _SHORTEST_S),
        bound_share=_LATENESS_BOUND_SHARE,
    )


def device_problems(info: DeviceInfo) -> list[str]:
    """Reasons why a device's results are invalid; empty if they are valid."""
    late = info.deadline_overrun
    if late is None or late.share <= late.bound_share:
        return []
    return [
        f"{info.name} was late by {percent_text(late.share)} of the run, above "
        f"{percent_text(late.bound_share)}"
    ]
