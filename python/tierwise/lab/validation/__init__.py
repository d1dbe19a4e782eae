"""Validates predictions: measures in slots what was predicted, and learns the model's error.

Not here: predicting; see ``predict``.
"""

from tierwise.lab.validation.accuracy import (
    Accuracy,
    Pair,
    Summary,
    by,
    regrets,
    small_regret,
    summary,
    verdicts,
)
from tierwise.lab.validation.calibration import calibrate, to_toml
from tierwise.lab.validation.case import Case, cases_of
from tierwise.lab.validation.judging import judge, publish, rounds_in
from tierwise.lab.validation.rows import Row, read_rows
from tierwise.lab.validation.runner import estimate_s, most_telling, run
from tierwise.lab.validation.spec import ValidationSpec, load
from tierwise.lab.validation.truth import Measured

__all__ = [
    "Accuracy",
    "Case",
    "Measured",
    "Pair",
    "Row",
    "Summary",
    "ValidationSpec",
    "by",
    "calibrate",
    "cases_of",
    "estimate_s",
    "judge",
    "load",
    "most_telling",
    "publish",
    "read_rows",
    "regrets",
    "rounds_in",
    "run",
    "small_regret",
    "summary",
    "to_toml",
    "verdicts",
]
