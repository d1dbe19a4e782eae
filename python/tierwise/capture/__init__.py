"""Records a running database from kernel tracepoints.

Not here: anything that reads a finished recording; see ``recording``.
"""

from tierwise.capture.day import DayRecorder
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.record import Enough, Session, record_command, record_running
from tierwise.capture.schedule import DEFAULT_DUTY, BurstCost, DayPlan, Schedule, Taken, parse_duty
from tierwise.capture.target import Target, of_pid, pid_of_engine, server_at

__all__ = [
    "DEFAULT_DUTY",
    "BurstCost",
    "DayPlan",
    "DayRecorder",
    "EngineCounters",
    "Enough",
    "Schedule",
    "Session",
    "Taken",
    "Target",
    "of_pid",
    "parse_duty",
    "pid_of_engine",
    "record_command",
    "record_running",
    "server_at",
]
