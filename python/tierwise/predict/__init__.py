"""Predictions from a recording: rate, latency and waits, each with an interval or a refusal.

Not here: running a database, text and charts.
"""

from tierwise.predict.joint_prediction import JointPrediction, predict_together
from tierwise.predict.model_error import CalibratedError, ModelError
from tierwise.predict.named_devices import RECORDED, resolve_device
from tierwise.predict.prediction import Estimate, Prediction, RecordedRun, Refusal
from tierwise.predict.predictor import Predictor
from tierwise.predict.ranking import Ranking, rank_placements
from tierwise.predict.scenario import Scenario

__all__ = [
    "RECORDED",
    "CalibratedError",
    "Estimate",
    "JointPrediction",
    "ModelError",
    "Prediction",
    "Predictor",
    "Ranking",
    "RecordedRun",
    "Refusal",
    "Scenario",
    "predict_together",
    "rank_placements",
    "resolve_device",
]
