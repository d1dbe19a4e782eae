"""Many recordings under one budget: options of each, the best set of moves, and how sure each move is.

Not here: predictions and prices, which ``advise`` makes; the joint replay, which ``predict`` makes.
"""

from tierwise.fleet.advice import advise_fleet, best_moves
from tierwise.fleet.catalogue import LeftOutRecording, RecordingAt, catalogue
from tierwise.fleet.options import DatabaseOptions, FleetOption, LogDevice, OptionsTask, options_of
from tierwise.fleet.packing import ShareLimits, with_sharing
from tierwise.fleet.records import (
    DatabaseMove,
    FleetAdvice,
    FleetDatabase,
    FleetMove,
    FleetSharing,
    SharedDatabase,
    SharedDevice,
)
from tierwise.fleet.results import Results
from tierwise.fleet.weights import Weight, Weights, WeightsFile
from tierwise.model.executor import Executor, Lost, Threads

__all__ = [
    "DatabaseMove",
    "DatabaseOptions",
    "Executor",
    "FleetAdvice",
    "FleetDatabase",
    "FleetMove",
    "FleetOption",
    "FleetSharing",
    "LeftOutRecording",
    "LogDevice",
    "Lost",
    "OptionsTask",
    "RecordingAt",
    "Results",
    "ShareLimits",
    "SharedDatabase",
    "SharedDevice",
    "Threads",
    "Weight",
    "Weights",
    "WeightsFile",
    "advise_fleet",
    "best_moves",
    "catalogue",
    "options_of",
    "with_sharing",
]
