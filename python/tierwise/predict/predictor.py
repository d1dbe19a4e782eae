"""A recording that answers questions: reproduced first, then replayed on other machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tierwise.predict import estimates, memory
from tierwise.predict.devices import RECORDED
from tierwise.predict.doubts import Doubts, doubts, refusal
from tierwise.predict.model_error import ModelError, Storage, What, path_between
from tierwise.predict.prediction import Estimate, Prediction, RecordedRun, Refusal, RoleLoad
from tierwise.predict.question import Question
from tierwise.predict.replayed import Outcome
from tierwise.predict.replayer import SPAN_S, Asked, Replayer
from tierwise.recording import About, Recording
from tierwise.roles import Role

SEEDS = 5
"""Runs of the simulator behind an interval."""
_PERCENTILES: tuple[What, ...] = ("p50", "p95", "p99")
UNVALIDATED_HALF_WIDTH = 0.2
"""Half width of the logarithm for a model that was never measured: what published replay gets at worst."""
NOT_VALIDATED = (
    "not validated: no prediction was measured on this kind of engine yet, so for the error of the model the "
    "intervals hold a guess of 20\u00a0%"
)


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
    ) -> None:
        """Replay the recorded run. ``warnings`` are those of the recording: every answer repeats them."""
        self.replayer = replayer
        self.work = replayer.work
        self._error = ModelError.read() if model_error is None else model_error
        self._seeds = range(seeds)
        reproduced = replayer.reproduce(self._seeds)
        self._base = reproduced.outcomes
        self._warnings = list(dict.fromkeys([*warnings, *self.work.limits]))
        self._counts_transactions = self.work.transactions > 0
        observed = self.work.observed
        rate = observed.transactions_per_s if self._counts_transactions else observed.turns_per_s
        self.run = RecordedRun(
            engine=about.engine,
            engine_version=about.engine_version,
            cores=self.work.cores,
            memory_bytes=self.work.memory_bytes,
            clients=self.work.sessions,
            duration_s=self.work.span_s if self.work.once else about.duration_s,
            once=self.work.once,
            unit="transactions" if self._counts_transactions else "requests",
            rate_per_s=rate,
            reproduced_rate_per_s=rate * (1 + reproduced.error),
            error=reproduced.error,
            latency_error=reproduced.latency_error,
            devices=self._recorded_devices(),
            footprints=self.work.footprints,
        )

    @classmethod
    def open(cls, path: Path, *, seeds: int = SEEDS, model_error: ModelError | None = None) -> Predictor:
        """Open a recording and reproduce its run.

        Raises:
            TierwiseError: no recording, a damaged or newer one, or one without work in it.
        """
        recording = Recording.open(path)
        replayer = Replayer.open(path)
        return cls(recording.about, recording.warnings, replayer, seeds=seeds, model_error=model_error)

    @property
    def as_recorded(self) -> Prediction:
        """The recorded run as it is reproduced: what every speed-up is against."""
        return self._prediction(Question(), self._base, Doubts())

    def predict(self, questions: Sequence[Question], *, seeds: int | None = None) -> list[Prediction]:
        """Answer each question, in order.

        Args:
            questions: what to change.
            seeds: runs of the simulator for each, at most those that the recorded run was replayed with.
        """
        numbers = self._seeds if seeds is None else self._seeds[:seeds]
        refused = [self.run.refused or refusal(question, self.work) for question in questions]
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
        bounds = [self.rate_of(outcome) for one, outcome in pairs if one.misses != memory.LIKELY]
        rate = self.rate_of(likely[0])
        if why := memory.refusal(bounds, rate):
            return self._refused(question, why)
        found = doubts(question, self.work)
        memory.doubt(question, self.work, bounds, rate, found)
        return self._prediction(question, likely, found)

    def _refused(self, question: Question, why: Refusal) -> Prediction:
        return Prediction(question=question, refused=why, warnings=self._warnings, unit=self.run.unit)

    def _prediction(self, question: Question, outcomes: Sequence[Outcome], found: Doubts) -> Prediction:
        rates = [self.rate_of(outcome) for outcome in outcomes]
        speedup = self._speedup_of(rates)
        widths = [*found.half_widths, self._model_half_width(question, "rate", speedup)]
        slow = {
            what: [*found.half_widths, self._model_half_width(question, what, speedup)]
            for what in _PERCENTILES
        }
        rate = estimates.estimate(rates, widths)
        latencies = [outcome.latency for outcome in outcomes]
        first = outcomes[0]
        return Prediction(
            question=question,
            once=self.work.once,
            unit=self.run.unit,
            rate_per_s=rate,
            seed_rates_per_s=rates,
            elapsed_s=rate and estimates.inverse(rate, self._recorded_units),
            speedup=self._speedup(rates, widths if question.changes else None),
            p50_us=estimates.estimate([one.p50_us for one in latencies], slow["p50"]),
            p95_us=estimates.estimate([one.p95_us for one in latencies], slow["p95"]),
            p99_us=estimates.estimate([one.p99_us for one in latencies], slow["p99"]),
            shares={
                name: sum(outcome.shares.get(name, 0.0) for outcome in outcomes) / len(outcomes)
                for name in first.shares
            },
            commits_per_flush=sum(outcome.commits_per_flush for outcome in outcomes) / len(outcomes),
            cpu_busy_share=sum(outcome.busy_share for outcome in outcomes) / len(outcomes),
            io=self._io(question, first),
            seeds=len(outcomes),
            validated=self._error.find(self.run.engine, self._path(question), "rate") is not None,
            warnings=self._said(question, [*found.warnings, *first.warnings]),
        )

    def _speedup(self, rates: Sequence[float], widths: Sequence[float] | None) -> Estimate | None:
        if widths is None:
            return Estimate(value=1.0, low=1.0, high=1.0)
        return estimates.ratio(rates, [self.rate_of(one) for one in self._base][: len(rates)], widths)

    def _speedup_of(self, rates: Sequence[float]) -> float:
        """The speed-up that was learnt from: 1 where nothing was done."""
        found = self._speedup(rates, ())
        return found.value if found else 1.0

    def _model_half_width(self, question: Question, what: What, speedup: float) -> float:
        """What was learnt, but never less than the error with which the recorded run itself is reproduced."""
        own = abs(self.run.error if what == "rate" else self.run.latency_error or self.run.error)
        if not question.changes:
            return own
        learnt = self._error.find(self.run.engine, self._path(question), what)
        return max(learnt.at(speedup) if learnt else UNVALIDATED_HALF_WIDTH, own)

    def _path(self, question: Question) -> str:
        """From the kind of storage that was recorded to the kind that is asked for."""
        emulated = any(device != RECORDED for device in self.run.devices.values())
        recorded: Storage = "emulated" if emulated else "real"
        asked: Storage = "emulated" if question.emulated else "real"
        return path_between(recorded, asked if "placement" in question.changes else recorded)

    def _said(self, question: Question, own: Sequence[str]) -> list[str]:
        """Warnings of the recording, of the question and of the error that was learnt, each once."""
        warnings = [*self._warnings, *own]
        if not question.changes:
            return list(dict.fromkeys(warnings))
        if self._error.find(self.run.engine, self._path(question), "rate") is None:
            warnings.append(NOT_VALIDATED)
        elif untried := self._error.unlearnt(self.run.engine, self._path(question), question.changes):
            names = " and ".join(name.replace("_", " ") for name in untried)
            warnings.append(f"no validation has tried another {names}: the error may be greater than learnt")
        return list(dict.fromkeys(warnings))

    @property
    def _recorded_units(self) -> float:
        """Transactions or requests of the whole recording, between its bursts too."""
        if self.work.once:
            return float(self.work.transactions if self._counts_transactions else self.work.turns)
        return self.run.rate_per_s * self.run.duration_s

    def rate_of(self, outcome: Outcome) -> float:
        """Transactions or requests a second of one outcome."""
        done = outcome.transactions if self._counts_transactions else outcome.turns
        return done / outcome.elapsed_s if outcome.elapsed_s > 0 else 0.0

    def _recorded_devices(self) -> dict[Role, str]:
        return {role: device.profile or RECORDED for device in self.work.devices for role in device.roles}

    def _io(self, question: Question, outcome: Outcome) -> dict[Role, RoleLoad]:
        devices = question.devices_of([one.role for one in outcome.io])
        elapsed_s = outcome.elapsed_s or 1.0
        return {
            one.role: RoleLoad(
                device=devices[one.role],
                size_bytes=self.work.footprints.get(one.role, 0),
                reads_per_s=one.reads / elapsed_s,
                writes_per_s=one.writes / elapsed_s,
                flushes_per_s=one.flushes / elapsed_s,
                read_bytes_per_s=one.read_bytes / elapsed_s,
                written_bytes_per_s=one.written_bytes / elapsed_s,
                busy_share=one.busy_s / elapsed_s,
            )
            for one in outcome.io
        }
