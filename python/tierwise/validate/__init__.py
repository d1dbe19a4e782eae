"""The proof: what was predicted, measured on live disks, and how far the one is from the other."""

from tierwise.validate.accuracy import Accuracy, Pair, Reproduction, Summary, by, summary
from tierwise.validate.learning import learn, learn_without, to_toml
from tierwise.validate.order import cases_of, plan
from tierwise.validate.pairs import Runs, compare, nothing_learnt
from tierwise.validate.runner import run
from tierwise.validate.spec import Case, ValidationSpec, load
from tierwise.validate.verdict import judge

__all__ = [
    "Accuracy",
    "Case",
    "Pair",
    "Reproduction",
    "Runs",
    "Summary",
    "ValidationSpec",
    "by",
    "cases_of",
    "compare",
    "judge",
    "learn",
    "learn_without",
    "load",
    "nothing_learnt",
    "plan",
    "run",
    "summary",
    "to_toml",
]
