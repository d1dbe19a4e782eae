"""A study on many hosts: whole blocks of runs go to hosts, results come back run by run.

Not here: one run of a study; see ``runner``.
"""

from tierwise.lab.studies.runner.hosts.blocks import unfinished
from tierwise.lab.studies.runner.hosts.coordinator import Hosts, Pending, run_blocks
from tierwise.lab.studies.runner.hosts.task import RunTask, run_here

__all__ = ["Hosts", "Pending", "RunTask", "run_blocks", "run_here", "unfinished"]
