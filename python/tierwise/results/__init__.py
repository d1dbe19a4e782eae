"""The versioned schema of one run's results, and their files.

Not here: conclusions from results; see ``report``.
"""

from tierwise.results.conditions import (
    AttainableRate,
    ColdStart,
    DeadlineOverrun,
    DeviceInfo,
    EngineInfo,
    Machine,
    StudyHost,
    WarmFile,
    WorkloadInfo,
)
from tierwise.results.faults import DeviceDeath, DeviceDeaths, IntegrityCheck, PowerCut, PowerCuts
from tierwise.results.measurements import (
    Counters,
    CpuUse,
    FlushCheck,
    FlushTimes,
    Latency,
    PatternResult,
    Record,
    RoleIo,
    RoleProof,
    UntracedIo,
    WaitClass,
    WaitProfile,
    WaitShare,
)
from tierwise.results.records import SCHEMA_VERSION, LapResult, PaperValue, RunResult, StudyInfo

__all__ = [
    "SCHEMA_VERSION",
    "AttainableRate",
    "ColdStart",
    "Counters",
    "CpuUse",
    "DeadlineOverrun",
    "DeviceDeath",
    "DeviceDeaths",
    "DeviceInfo",
    "EngineInfo",
    "FlushCheck",
    "FlushTimes",
    "IntegrityCheck",
    "LapResult",
    "Latency",
    "Machine",
    "PaperValue",
    "PatternResult",
    "PowerCut",
    "PowerCuts",
    "Record",
    "RoleIo",
    "RoleProof",
    "RunResult",
    "StudyHost",
    "StudyInfo",
    "UntracedIo",
    "WaitClass",
    "WaitProfile",
    "WaitShare",
    "WarmFile",
    "WorkloadInfo",
]
