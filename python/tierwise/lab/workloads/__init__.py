"""Workloads: the format, its checks, and the program that an engine's clients run.

Not here: names of engines.
"""

from tierwise.lab.workloads.workload import Workload, workload_names

__all__ = ["Workload", "workload_names"]
