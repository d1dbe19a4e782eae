"""A study on many hosts: whole blocks of runs go to hosts, results come back run by run.

Not here: how a host is reached; see ``cluster.dask_hosts``.
"""

from tierwise.studies.runner.hosts.blocks import unfinished
from tierwise.studies.runner.hosts.coordinator import Hosts, Pending, run_blocks
from tierwise.studies.runner.hosts.task import RunTask, run_here

__all__ = ["Hosts", "Pending", "RunTask", "run_blocks", "run_here", "unfinished"]
