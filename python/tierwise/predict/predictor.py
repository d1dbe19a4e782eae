"""A recording that answers questions: reproduced first, then replayed on other machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tierwise.predict import counting, growth, memory
from tierwise.predict.answer import Answers
from tierwise.predict.devices import RECORDED
from tierwise.predict.doubts import Doubts, doubts, refusal
from tierwise.predict.model_error import ModelError
from tierwise.predict.prediction import Prediction, RecordedRun, Refusal
from tierwise.predict.question import Question
from tierwise.predict.replayed import Outcome
from tierwise.predict.replayer import SPAN_S, Asked, Replayer
from tierwise.recording import About, Recording

SEEDS = 5
"""Runs of the simulator behind an interval."""


def predict(
    path: Path, questions: Sequence[Question], *, seeds: int = SEEDS, model_error: ModelError | None = None
) -> list[Prediction]:
    """Answer questions from a recording.

    Args:
        path: folder of the recording.
        questions: what to change.
        seeds: runs of the simulator for each question.
        model_error: what validation has learnt; what ships with tierwise if not given.

    Returns:
        One answer for each question, in order; a refused one has its reason and no figures.

    Raises:
        TierwiseError: no recording, a damaged or newer one, or one without work in it.
    """
    return Predictor.open(path, seeds=seeds, model_error=model_error).predict(questions)


class Predictor:
    """An opened recording, reproduced."""

    def __init__(
        self,
        about: About,
        warnings: Sequence[str],
        replayer: Replayer,
        *,
        seeds: int = SEEDS,
        model_error: ModelError | None = None,
        unit: counting.Unit | None = None,
    ) -> None:
        """Replay the recorded run. ``warnings`` are those of the recording: every answer repeats them.

        Rates count ``unit``; transactions, if the recording shows them, where it is not given.
        """
        self.about, self.replayer = about, replayer
        self.work = replayer.work
        self._seeds = range(seeds)
        reproduced = replayer.reproduce(self._seeds)
        self._base = reproduced.outcomes
        self._warnings = list(dict.fromkeys([*warnings, *self.work.limits]))
        unit = counting.unit_of(self.work, unit)
        if unit == "requests" and self.work.transactions > 0:
            shared = self.work.demands.shared_by(self.work.turns / self.work.transactions)
            self.work = self.work.model_copy(update={"demands": shared})
        observed = self.work.observed
        rate = observed.transactions_per_s if unit == "transactions" else observed.turns_per_s
        self.run = RecordedRun(
            engine=about.engine,
            engine_version=about.engine_version,
            cores=self.work.cores,
            memory_bytes=self.work.memory_bytes,
            clients=self.work.sessions,
            duration_s=self.work.span_s if self.work.once else about.duration_s,
            once=self.work.once,
            unit=unit,
            rate_per_s=rate,
            reproduced_rate_per_s=rate * (1 + reproduced.error),
            error=reproduced.error,
            latency_error=reproduced.latency_error,
            data_directory_bytes=about.data_directory_bytes,
            devices={
                role: device.profile or RECORDED for device in self.work.devices for role in device.roles
            },
            footprints=self.work.footprints,
        )
        error = ModelError.read() if model_error is None else model_error
        self.answers = Answers(self.run, self.work, reproduced, error, self._warnings, replayer.fresh)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        seeds: int = SEEDS,
        model_error: ModelError | None = None,
        unit: counting.Unit | None = None,
        fresh: bool = False,
    ) -> Predictor:
        """Open a recording and reproduce its run.

        Args:
            path: folder of the recording.
            seeds: runs of the simulator for each question.
            model_error: what validation has learnt; what ships with tierwise if not given.
            fresh: whether new devices are as they leave the factory, rather than as long use leaves them.

        Raises:
            TierwiseError: no recording, a damaged or newer one, or one without work in it.
        """
        recording = Recording.open(path)
        replayer = Replayer.open(path, fresh=fresh)
        return cls(
            recording.about, recording.warnings, replayer, seeds=seeds, model_error=model_error, unit=unit
        )

    @property
    def as_recorded(self) -> Prediction:
        """The recorded run with what replaying it leaves over: what every speed-up is against."""
        return self.answers.prediction(Question(), self._base, Doubts())

    def predict(self, questions: Sequence[Question], *, seeds: int | None = None) -> list[Prediction]:
        """Answer each question, in order.

        Args:
            questions: what to change.
            seeds: runs of the simulator for each, at most those that the recorded run was replayed with.

        Raises:
            TierwiseError: growth of what the recording does not show.
        """
        numbers = self._seeds if seeds is None else self._seeds[:seeds]
        questions = [growth.grown(question, self.run, self.work) for question in questions]
        refused = [refusal(question, self.work) for question in questions]
        open_ = [question for question, why in zip(questions, refused, strict=True) if why is None]
        asked = [self._asked(question, numbers) for question in open_]
        answers = iter(self.replayer.ask([one for each in asked for one in each]) if asked else [])
        answered = iter(
            self._answered(question, each, [next(answers) for _ in each])
            for question, each in zip(open_, asked, strict=True)
        )
        return [
            self._refused(question, why) if why else next(answered)
            for question, why in zip(questions, refused, strict=True)
        ]

    def _asked(self, question: Question, seeds: Sequence[int]) -> list[Asked]:
        """A question under each seed, then what shows how much hangs on what the recording does not tell."""
        bounds = memory.bounds(question, self.work)
        return [
            *(Asked(question, seed, SPAN_S) for seed in seeds),
            *(Asked(question, seeds[0], SPAN_S, misses) for misses in bounds),
        ]

    def _answered(
        self, question: Question, asked: Sequence[Asked], answers: Sequence[Outcome | Refusal]
    ) -> Prediction:
        why = next((answer for answer in answers if isinstance(answer, Refusal)), None)
        if why:
            return self._refused(question, why)
        outcomes = [answer for answer in answers if isinstance(answer, Outcome)]
        pairs = list(zip(asked, outcomes, strict=True))
        likely = [outcome for one, outcome in pairs if one.misses == memory.LIKELY]
        bounds = [self.answers.rate_of(outcome) for one, outcome in pairs if one.misses != memory.LIKELY]
        found = doubts(question, self.work, self.about.stolen_cpu_share)
        memory.doubt(question, self.work, bounds, self.answers.rate_of(likely[0]), found)
        return self.answers.prediction(question, likely, found)

    def _refused(self, question: Question, why: Refusal) -> Prediction:
        return Prediction(question=question, refused=why, warnings=self._warnings, unit=self.run.unit)
