"""Records a running database from kernel tracepoints.

Not here: anything that reads a finished recording; see ``recording``.
"""

from tierwise.capture.command import record_command
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.running import Enough, record_running
from tierwise.capture.schedule import DEFAULT_DUTY, Schedule, parse_duty
from tierwise.capture.session import Session
from tierwise.capture.target import Target, of_engine, of_pid

__all__ = [
    "DEFAULT_DUTY",
    "EngineCounters",
    "Enough",
    "Schedule",
    "Session",
    "Target",
    "of_engine",
    "of_pid",
    "parse_duty",
    "record_command",
    "record_running",
]
