"""Runs a study: storage for a placement, the measured phase, placement verification, one record per run."""

from tierwise.lab.studies.runner.recorded import Recordings
from tierwise.lab.studies.runner.session import (
    FAILED_FILE,
    RESULTS_FILE,
    STUDY_FILE,
    check,
    find_latest,
    find_unfinished,
    restrict_to_runnable,
    results_in,
    run_study,
)
from tierwise.results.files import LATEST

__all__ = [
    "FAILED_FILE",
    "LATEST",
    "RESULTS_FILE",
    "STUDY_FILE",
    "Recordings",
    "check",
    "find_latest",
    "find_unfinished",
    "restrict_to_runnable",
    "results_in",
    "run_study",
]
