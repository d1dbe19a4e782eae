"""Workloads: the format, its checks, and the program that an engine's clients run.

Not here: names of engines.
"""

from tierwise.lab.workloads.workload import Workload, names

__all__ = ["Workload", "names"]
