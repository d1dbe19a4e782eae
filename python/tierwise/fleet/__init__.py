"""Many recordings under one budget: options of each, the best set of moves, and how sure each move is.

Not here: predictions and prices, which ``advise`` makes; devices that several databases share.
"""

from tierwise.fleet.advice import advise_fleet, best_moves
from tierwise.fleet.catalogue import LeftOutRecording, RecordingAt, catalogue
from tierwise.fleet.executor import Executor, Lost, Threads
from tierwise.fleet.options import DatabaseOptions, FleetOption, OptionsTask, options_of
from tierwise.fleet.records import FleetAdvice, FleetDatabase, FleetMove
from tierwise.fleet.results import Results
from tierwise.fleet.weights import Weight, Weights, WeightsFile

__all__ = [
    "DatabaseOptions",
    "Executor",
    "FleetAdvice",
    "FleetDatabase",
    "FleetMove",
    "FleetOption",
    "LeftOutRecording",
    "Lost",
    "OptionsTask",
    "RecordingAt",
    "Results",
    "Threads",
    "Weight",
    "Weights",
    "WeightsFile",
    "advise_fleet",
    "best_moves",
    "catalogue",
    "options_of",
]
