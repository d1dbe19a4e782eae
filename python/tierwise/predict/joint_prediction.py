"""Several recordings answered together: their databases disturb each other on the devices that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.model.errors import TierwiseError
from tierwise.predict.named_devices import RECORDED
from tierwise.predict.prediction import Estimate, Prediction, Refusal
from tierwise.predict.predictor import SEEDS, Predictor
from tierwise.predict.replayer import SPAN_S, Replayer, SimulationRequest
from tierwise.predict.scenario import Scenario
from tierwise.results.measurements import StrictModel

_FIX = "give each shared device a number, as nvme-dc#1, and place a role of each database on it"


class JointPrediction(StrictModel):
    """The answer for one of several databases."""

    database: str
    """Name of its recording."""
    alone: Prediction
    """With the same devices, all to itself."""
    together: Prediction
    """While the other databases are at work."""
    kept: Estimate
    """Rate together over the rate alone; the interval is that of the seeds."""


def predict_together(
    predictors: Mapping[str, Predictor], scenarios: Mapping[str, Scenario], *, seeds: int = SEEDS
) -> list[JointPrediction]:
    """Answer one scenario for each database, all at the same time.

    Each database has a machine of its own: cores, memory, and every device whose name has no number. A device
    with a number, as ``nvme-dc#1``, is one device for all databases that name it.

    Args:
        scenarios: for each of them; of what a scenario can change, only the placement.
        seeds: runs of the simulator, at most those that the recorded runs were replayed with.

    Raises:
        TierwiseError: no device is shared; a scenario changes more than the placement; or naming the database
            that cannot be answered, as an observation or work that is done once.
    """
    _require_placement_only(scenarios)
    _require_shared(predictors, scenarios)
    names, every = list(predictors), list(predictors.values())
    asked = [[SimulationRequest(scenarios[name], seed, SPAN_S) for name in names] for seed in range(seeds)]
    outcomes = []
    for results in Replayer.ask_together([predictor.replayer for predictor in every], asked):
        if isinstance(results, tuple):
            number, why = results
            raise TierwiseError(f"{names[number]}: {why.message}", why.fix)
        outcomes.append(results)
    answers = []
    for number, (name, predictor) in enumerate(predictors.items()):
        alone = predictor.predict([scenarios[name]], seeds=seeds)[0]
        if isinstance(alone.refused, Refusal):
            raise TierwiseError(f"{name}: {alone.refused.message}", alone.refused.fix)
        own = [joint[number] for joint in asked]
        together = predictor.answer(scenarios[name], own, [joint[number] for joint in outcomes])
        kept = _kept_rate_ratios(alone.seed_rates_per_s, together.seed_rates_per_s)
        answers.append(JointPrediction(database=name, alone=alone, together=together, kept=kept))
    return answers


def shared_devices(
    predictors: Mapping[str, Predictor], scenarios: Mapping[str, Scenario]
) -> dict[str, list[str]]:
    """Names of the databases that share each device, by the device's full name."""
    users: dict[str, list[str]] = {}
    for name, predictor in predictors.items():
        footprints, scenario = predictor.work.footprints, scenarios[name]
        placed = scenario.devices_of(footprints)
        for device in {placed[role] for role in scenario.numbered(footprints)} - {RECORDED}:
            users.setdefault(device, []).append(name)
    return {device: names for device, names in users.items() if len(names) > 1}


def _require_placement_only(scenarios: Mapping[str, Scenario]) -> None:
    for name, scenario in scenarios.items():
        if others := scenario.beside_placement:
            raise TierwiseError(
                f"{name}: databases are answered together with another placement alone, not with another "
                f"{' and '.join(others)}",
                "leave it out, or ask one by one",
            )


def _require_shared(predictors: Mapping[str, Predictor], scenarios: Mapping[str, Scenario]) -> None:
    if not shared_devices(predictors, scenarios):
        raise TierwiseError("no two databases share a device", _FIX)


def _kept_rate_ratios(alone: Sequence[float], together: Sequence[float]) -> Estimate:
    """Ratios of the same seeds: their mean and their range."""
    ratios = [shared / own if own else 1.0 for own, shared in zip(alone, together, strict=True)]
    return Estimate(value=sum(ratios) / len(ratios), low=min(ratios), high=max(ratios))
