"""Describes this machine and its current load."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

import psutil

from tierwise.results import Machine


def describe() -> Machine:
    """Machine conditions to print beside every figure."""
    return Machine(
        host=platform.node(),
        cpu_model=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        operating_system=platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        tierwise_version=metadata.version("tierwise"),
    )


def busy_cpu_s() -> float:
    """CPU seconds that all cores together have been busy since boot."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
