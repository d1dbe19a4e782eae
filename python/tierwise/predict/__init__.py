"""The recorded work on another machine: rate, latency and waits, each with an interval, or a refusal."""

from tierwise.predict.devices import RECORDED, NamedDevice, resolve
from tierwise.predict.model_error import LearntError, ModelError
from tierwise.predict.prediction import Bound, Estimate, Prediction, RecordedRun, Refusal, RoleLoad
from tierwise.predict.predictor import Predictor, predict
from tierwise.predict.question import Question, parse_placement
from tierwise.predict.ranking import Ranking, rank

__all__ = [
    "RECORDED",
    "Bound",
    "Estimate",
    "LearntError",
    "ModelError",
    "NamedDevice",
    "Prediction",
    "Predictor",
    "Question",
    "Ranking",
    "RecordedRun",
    "Refusal",
    "RoleLoad",
    "parse_placement",
    "predict",
    "rank",
    "resolve",
]
