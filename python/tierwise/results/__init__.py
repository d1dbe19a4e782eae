"""The versioned schema of one run's results, and their files.

Not here: conclusions from results; see ``report``.
"""

from tierwise.results.conditions import (
    AttainableRate,
    ColdStart,
    DeadlineOverrun,
    DeviceInfo,
    EngineInfo,
    RunConditions,
    StudyHost,
    WarmFile,
    WorkloadInfo,
)
from tierwise.results.fault_results import DeviceDeath, DeviceDeaths, IntegrityCheck, PowerCut, PowerCuts
from tierwise.results.measurements import (
    Counters,
    CpuUse,
    Latency,
    PatternResult,
    RoleIo,
    RoleProof,
    StrictModel,
    UntracedIo,
    WaitClass,
    WaitProfile,
    WaitShare,
)
from tierwise.results.result_schema import SCHEMA_VERSION, LapResult, PaperValue, RunResult, StudyInfo

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
    "IntegrityCheck",
    "LapResult",
    "Latency",
    "PaperValue",
    "PatternResult",
    "PowerCut",
    "PowerCuts",
    "RoleIo",
    "RoleProof",
    "RunConditions",
    "RunResult",
    "StrictModel",
    "StudyHost",
    "StudyInfo",
    "UntracedIo",
    "WaitClass",
    "WaitProfile",
    "WaitShare",
    "WarmFile",
    "WorkloadInfo",
]
