"""Validates predictions: measures what was predicted and learns the model's error.

Not here: predicting; see ``predict``.
"""

from tierwise.validation.accuracy import Accuracy, Figure, Pair, Reproduction, Summary, by, summary
from tierwise.validation.calibration import calibrate, calibrate_without, to_toml
from tierwise.validation.case import Case, cases_of
from tierwise.validation.order import estimate_s, plan
from tierwise.validation.pairs import RoundData, rounds_in
from tierwise.validation.publish import publish
from tierwise.validation.rows import Row, read_rows
from tierwise.validation.runner import Observer, run
from tierwise.validation.spec import ValidationSpec, load
from tierwise.validation.verdict import judge

__all__ = [
    "Accuracy",
    "Case",
    "Figure",
    "Observer",
    "Pair",
    "Reproduction",
    "RoundData",
    "Row",
    "Summary",
    "ValidationSpec",
    "by",
    "calibrate",
    "calibrate_without",
    "cases_of",
    "estimate_s",
    "judge",
    "load",
    "plan",
    "publish",
    "read_rows",
    "rounds_in",
    "run",
    "summary",
    "to_toml",
]
