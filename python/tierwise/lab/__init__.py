"""Studies become runs, and runs become records."""

from tierwise.lab.gaps import without_gaps
from tierwise.lab.lab import (
    FAILED_FILE,
    LATEST,
    PARQUET_FILE,
    RESULTS_FILE,
    STUDY_FILE,
    Observer,
    find_latest,
    find_unfinished,
    results_in,
    run_study,
    set_failed_aside,
)
from tierwise.lab.recorded import Recordings

__all__ = [
    "FAILED_FILE",
    "LATEST",
    "PARQUET_FILE",
    "RESULTS_FILE",
    "STUDY_FILE",
    "Observer",
    "Recordings",
    "find_latest",
    "find_unfinished",
    "results_in",
    "run_study",
    "set_failed_aside",
    "without_gaps",
]
