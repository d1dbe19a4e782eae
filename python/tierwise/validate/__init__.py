"""The proof: what was predicted, measured, and how far the one is from the other."""

from tierwise.validate.accuracy import Accuracy, Figure, Pair, Reproduction, Summary, by, summary
from tierwise.validate.case import Case, cases_of
from tierwise.validate.learning import learn, learn_without, to_toml
from tierwise.validate.order import estimate_s, plan
from tierwise.validate.pairs import RoundData, rounds_in
from tierwise.validate.publish import publish
from tierwise.validate.rows import Row, read_rows
from tierwise.validate.runner import Observer, run
from tierwise.validate.spec import ValidationSpec, load
from tierwise.validate.verdict import judge

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
    "cases_of",
    "estimate_s",
    "judge",
    "learn",
    "learn_without",
    "load",
    "plan",
    "publish",
    "read_rows",
    "rounds_in",
    "run",
    "summary",
    "to_toml",
]
