"""The conditions of a run: machine, engine, workload, devices, and how cold its caches were."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

from pydantic import Field

from tierwise.model.placement import Role
from tierwise.results.measurements import NotNegative, NotNegativeCount, RoleIo, StrictModel, UntracedIo


class WarmFile(StrictModel):
    """A file whose pages stayed in the page cache: locked, dirty or mapped by another process."""

    role: Role
    file: str
    """Path within the role's directory."""
    resident_bytes: NotNegativeCount
    """Of the file, in the page cache."""


class ColdStart(StrictModel):
    """How caches were emptied before the server started."""

    dropped: Literal["own files", "whole machine"]
    """``whole machine`` if the user gave --drop-caches."""
    remounted: list[Role] = []
    """Roles on emulated disks that were unmounted and mounted again: no page of them stayed."""
    not_remounted: dict[Role, str] = {}
    """Roles on emulated disks that were in use, with the reason: only the pages of files were dropped."""
    resident_bytes: NotNegativeCount = 0
    """Of all files, in the page cache after it."""
    warm: list[WarmFile] = []
    """Files that stayed warm, the largest first, at most five."""

    @property
    def warnings(self) -> list[str]:
        """What was not as cold as it should be, one sentence part each."""
        busy = [
            f"the disk of {role} was not unmounted ({reason}): its inodes and directories stayed in memory"
            for role, reason in self.not_remounted.items()
        ]
        stayed = [
            f"{file.resident_bytes >> 10:,} KiB of {file.file} ({file.role}) stayed in the page cache"
            for file in self.warm
        ]
        return [*busy, *stayed]


class DeadlineOverrun(StrictModel):
    """How late an emulated device completed requests; a run above ``bound_share`` is invalid."""

    p50_us: NotNegative
    p99_us: NotNegative
    max_us: NotNegative
    share: NotNegative
    """Deadline overrun of all requests, the mean of concurrent ones, over the elapsed time. The run may have
    taken longer by this share."""
    bound_share: NotNegative


class AttainableRate(StrictModel):
    """Random requests of 4 KiB a second to an emulated device at one depth, here and by its model."""

    op: Literal["read", "write"]
    """What the requests do."""
    depth: int = Field(ge=1)
    """Requests outstanding at a time."""
    model_per_s: float = Field(gt=0)
    """By the device's model."""
    here_per_s: float = Field(gt=0)
    """On this machine, at most the model's. A write's path is assumed to cost as much as a read's."""

    @property
    def longer_us(self) -> float:
        """Time that a request takes longer here than by the model."""
        return 1e6 * self.depth * (1 / self.here_per_s - 1 / self.model_per_s)

    @property
    def is_attained(self) -> bool:
        """Whether the device is emulated at its model's pace, to 10 %."""
        return self.here_per_s >= _ATTAINED_SHARE * self.model_per_s


_ATTAINED_SHARE = 0.9


class DeviceInfo(StrictModel):
    """A device of the run. ``kind`` is that of its profile, or ``real``."""

    name: str
    kind: str
    profile: str | None = None
    own_profile: bool = False
    """Whether the profile is a file of the user's, whatever its name."""
    digest: str | None = None
    """Of what such a file held, and those that it refers to."""
    path: str | None = None
    write_cache: bool | None = None
    """Whether a power cut may lose completed writes until a flush; unknown of a real device."""
    lies_about_flush: bool = False
    roles: list[Role]
    deadline_overrun: DeadlineOverrun | None = None
    attainable: list[AttainableRate] = []
    """Of an emulated device that a processor can keep from its model's pace."""
    path_share: NotNegative | None = None
    """Of such a device: share of its requests' time that the emulation's path took, by ``attainable``."""
    write_amplification: NotNegative | None = None
    """Of a flash model: writes to its medium over writes of the host, since it started."""
    io: RoleIo | None = None
    """Of a real device: totals of the whole device, by the kernel's counters."""
    unattributed: RoleIo | None = None
    """Of a real device that roles share: I/O for no role's file, and all flushes."""
    untraced: UntracedIo | None = None
    """Of such a device: the kernel's counters less the roles' I/O and ``unattributed``."""
    same_device_as: str | None = None
    """Of a directory: the first device of the run that lies on the same real device, if that is another."""
    not_by_role: str | None = None
    """Why roles that share a real device have no I/O of their own."""


class EngineInfo(StrictModel):
    """The database server and every setting it ran with."""

    name: str
    version: str
    settings: dict[str, str]


class WorkloadInfo(StrictModel):
    """The work of the clients."""

    name: str
    """Of a shipped workload, or of the user's folder or script; its path in results of before."""
    digest: str | None = None
    """Of what a workload of the user's held."""
    scale: NotNegative
    clients: NotNegativeCount
    seed: int
    warmup_transactions: NotNegativeCount
    constants: dict[str, float] = {}
    """Constants of the workload that the study overrides."""
    memory_bytes: NotNegativeCount | None = None
    """Limit of the engine's memory, page cache included."""
    parallelism: NotNegativeCount | None = None
    """Greatest number of processes or threads that work on one statement."""
    caches: Literal["cold", "warm"] = "cold"
    """Before the warm-up: a restarted server and an empty page cache, or both as loading left them."""

    @property
    def title(self) -> str:
        """Its name for people, the same wherever its folder was."""
        return PurePath(self.name).name.replace("_", " ")


class RunConditions(StrictModel):
    """Conditions of the run."""

    host: str
    cpu_model: str
    cores: int = Field(ge=1)
    memory_bytes: NotNegativeCount
    kernel: str
    operating_system: str
    tierwise_version: str


class StudyHost(StrictModel):
    """A host of a study on many hosts."""

    name: str
    """Its host name, and the name of its worker if that was given one."""
