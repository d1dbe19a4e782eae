"""What a database does, recorded from the kernel's tracepoints: nothing is changed or installed there."""

from tierwise.record.command import record_command
from tierwise.record.engine_counters import EngineCounters
from tierwise.record.running import Enough, record_running
from tierwise.record.schedule import DEFAULT_DUTY, Schedule, parse_duty
from tierwise.record.session import Say, Session
from tierwise.record.target import Target, of_engine, of_pid

__all__ = [
    "DEFAULT_DUTY",
    "EngineCounters",
    "Enough",
    "Say",
    "Schedule",
    "Session",
    "Target",
    "of_engine",
    "of_pid",
    "parse_duty",
    "record_command",
    "record_running",
]
