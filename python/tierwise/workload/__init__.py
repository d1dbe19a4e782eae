"""Workloads as data: read, checked, and resolved into programs."""

from tierwise.workload.workload import (
    Workload,
    names,
)

__all__ = [
    "Workload",
    "names",
]
