"""One question, from its first answer until the seeds agree.

The first answer is one short simulation. Those that follow measure as long as ``tierwise predict`` does, one
seed after another, and stop by a rule: at least as many seeds as ``predict`` uses, and the 95 % interval of
the mean over seeds (Student, on the logarithm) at most 1 % to each side for the rate and 5 % for the 99th
percentile. If the seeds never agree, the last answer says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Literal

from tierwise.model.statistics import mean_half_width
from tierwise.predict import Prediction, Predictor, Refusal, Scenario
from tierwise.predict.predictor import SEEDS
from tierwise.predict.replayer import SPAN_S, SimulationRequest
from tierwise.predict.simulator_output import SimulationOutcome

FIRST_ENOUGH = 1000
"""Counted transactions behind the first answer: 2 to 65 ms of one core for the shipped recordings."""
FIRST_SPAN_S = 5.0
"""Virtual time after which fewer are enough."""
ENOUGH = 20_000
"""Counted transactions of each later simulation, where that of ``predict`` would count more: at most 0.3 s of
one core for the shipped recordings. A simulation cannot be interrupted, so this bounds how long a superseded
question still occupies a core."""
LEAST_SEEDS = SEEDS
MOST_SEEDS = 12
RATE_HALF_WIDTH = 0.01
"""Half width up to which the seeds agree on the rate, on the logarithm."""
P99_HALF_WIDTH = 0.05
"""The same for the 99th percentile of latencies."""

Stage = Literal["first", "refining", "final"]


@dataclass(frozen=True)
class RefinedAnswer:
    """The answer so far.

    Attributes:
        prediction: with the interval of the seeds so far.
        stage: ``first``, ``refining`` or ``final``.
        rate_half_width: of the 95 % interval over the seeds, on the logarithm; ``None`` with fewer than two,
            and where one counted nothing.
        agreed: whether the seeds agree by the rule above.
    """

    prediction: Prediction
    stage: Stage
    rate_half_width: float | None = None
    agreed: bool = False


class AnswerRefinement:
    """The simulations of one question, in order, and the answers they give. Threads may share it."""

    def __init__(self, predictor: Predictor, scenario: Scenario) -> None:
        self._predictor, self._scenario = predictor, scenario
        short, *_ = predictor.requests(scenario, [0], FIRST_SPAN_S, FIRST_ENOUGH)
        # Work that is done once has no short form.
        self._plan = self._full(None) if predictor.work.once else [short]
        self._skipped = 0 if predictor.work.once else 1
        self._given = 0
        self._outcomes: dict[int, SimulationOutcome] = {}
        self._known = 0
        """Simulations at the start of the plan whose outcomes are all there."""
        self._over = False
        self._lock = Lock()

    def _full(self, enough: int | None) -> list[SimulationRequest]:
        """Simulations as long as those of ``predict``, or with ``enough`` transactions; the bounds second."""
        asked = self._predictor.requests(self._scenario, range(MOST_SEEDS), SPAN_S, enough)
        first, *seeds = (ask for ask in asked if ask.is_likely)
        return [first, *(ask for ask in asked if not ask.is_likely), *seeds]

    @property
    def waits_for_first(self) -> bool:
        """Whether the simulation of the first answer was not handed out yet."""
        return self._given == 0

    @property
    def has_more(self) -> bool:
        """Whether a simulation is left to hand out."""
        return not self._over and self._given < len(self._plan)

    @property
    def refused(self) -> RefinedAnswer | None:
        """The answer without a simulation, if the recording cannot answer."""
        answer = self._predictor.refusal(self._scenario)
        return RefinedAnswer(answer, "final") if answer else None

    def simulate_next(self) -> RefinedAnswer | None:
        """Run the next simulation; the answer it gives, ``None`` if it gives no new one."""
        with self._lock:
            if not self.has_more:
                return None
            number, self._given = self._given, self._given + 1
        (outcome,) = self._predictor.replayer.ask([self._plan[number]])
        with self._lock:
            return None if self._over else self._answer(number, outcome)

    def _answer(self, number: int, outcome: SimulationOutcome | Refusal) -> RefinedAnswer | None:
        if isinstance(outcome, Refusal):
            self._over = True
            return RefinedAnswer(
                self._predictor.answer(self._scenario, [self._plan[number]], [outcome]), "final"
            )
        self._outcomes[number] = outcome
        answer = None
        while self._known in self._outcomes and not self._over:
            self._known += 1
            answer = self._with_known() or answer
        return answer

    def _with_known(self) -> RefinedAnswer | None:
        """The answer after one more simulation; the same whichever of two that overlap ended first."""
        skipped = self._skipped
        if self._known <= skipped:
            (first,) = self._outcomes.values()
            expected = first.transactions / first.elapsed_s * SPAN_S if first.elapsed_s else 0
            self._plan += self._full(ENOUGH if expected > ENOUGH else None)
            return self._made("first", self._plan[:1], [first])
        asked = self._plan[skipped : self._known]
        outcomes = [self._outcomes[number] for number in range(skipped, self._known)]
        seeds = [outcome for ask, outcome in zip(asked, outcomes, strict=True) if ask.is_likely]
        if len(seeds) < 2:
            is_first = not skipped and self._known == 1
            return self._made("first", asked, outcomes) if is_first else None
        rate_width = _width([self._predictor.answers.rate_of(outcome) for outcome in seeds])
        p99_width = _width([outcome.latency.percentiles_us[2] for outcome in seeds])
        agreed = len(seeds) >= LEAST_SEEDS and rate_width <= RATE_HALF_WIDTH and p99_width <= P99_HALF_WIDTH
        self._over = agreed or self._known == len(self._plan)
        stage: Stage = "final" if self._over else "refining"
        return self._made(stage, asked, outcomes, rate_width, agreed)

    def _made(
        self,
        stage: Stage,
        asked: Sequence[SimulationRequest],
        outcomes: Sequence[SimulationOutcome],
        width: float | None = None,
        agreed: bool = False,
    ) -> RefinedAnswer:
        known = width if width is not None and math.isfinite(width) else None
        return RefinedAnswer(self._predictor.answer(self._scenario, asked, outcomes), stage, known, agreed)


def _width(values: Sequence[float]) -> float:
    """Half width of the mean's interval on the logarithm; infinite where a figure is 0."""
    return mean_half_width([math.log(value) for value in values]) if min(values) > 0 else math.inf
