"""A recording that answers scenarios: reproduced first, then replayed on other machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path

from tierwise.device_models.profiles import ENDS
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import bounds, database_settings, rate_unit, role_space, scenario_machine, uncertainty
from tierwise.predict.answer import AnswerBuilder
from tierwise.predict.model_error import ModelError
from tierwise.predict.named_devices import RECORDED
from tierwise.predict.prediction import Prediction, RecordedRun, Refusal
from tierwise.predict.replayer import SPAN_S, Replayer, SimulationRequest
from tierwise.predict.scenario import MOST_CPU_SPEED, Scenario
from tierwise.predict.simulator_output import Demands, SimulationOutcome
from tierwise.predict.uncertainty import Uncertainty
from tierwise.recording import Observation, Recording, RecordingMetadata, open_recorded_source, pooler_of
from tierwise.recording.buffer_content import BufferContent
from tierwise.recording.relations import Relations

SEEDS = 5
"""Runs of the simulator behind an interval."""


class Predictor:
    """An opened recording, reproduced."""

    def __init__(
        self,
        about: RecordingMetadata,
        warnings: Sequence[str],
        replayer: Replayer,
        *,
        seeds: int = SEEDS,
        model_error: ModelError | None = None,
        unit: rate_unit.Unit | None = None,
    ) -> None:
        """Replay the recorded run. ``warnings`` are those of the recording: every answer repeats them.

        Rates count ``unit``; by default transactions, if the recording shows them.
        """
        self.about, self.replayer = (
            database_settings.with_shown_settings(about, replayer.work.footprints),
            replayer,
        )
        replayer.about = about
        self._selected: tuple[str, ...] = ()
        self._select: Callable[[tuple[str, ...]], Predictor] | None = None
        self._relations: Callable[[], Relations] | None = None
        self._buffer: Callable[[], BufferContent | None] = lambda: None
        self._selecting: Predictor | None = None
        self._seeds = range(seeds)
        self._own_warnings, self._model_error, self._unit = warnings, model_error, unit
        reproduced = replayer.reproduce(self._seeds)
        # A bound must hold, so processor time is never taken as more than the events show.
        demands = replayer.work.demands.with_cpu_times(min(reproduced.cpu_scale, 1.0))
        self.work = replayer.work.model_copy(update={"demands": demands})
        self._base = reproduced.outcomes
        self._warnings = list(dict.fromkeys([*warnings, *self.work.limits]))
        unit = rate_unit.rate_unit_of(self.work, unit)
        if unit == "requests" and self.work.transactions > 0:
            shared = self.work.demands.shared_by(self.work.turns / self.work.transactions)
            observed = self.work.observed.model_copy(update={"arrive": False})  # at a rate of transactions
            self.work = self.work.model_copy(update={"demands": shared, "observed": observed})
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
            requests_per_transaction=self.work.turns / self.work.transactions
            if self.work.transactions
            else None,
            cpu_us=self.work.demands.cpu_us or None,
            commit_delay_us=self.work.commit_delay_us,
            from_waits=self.work.from_waits,
            pooler=pooler.program if (pooler := pooler_of(about.clients)) else None,
        )
        error = ModelError.read() if model_error is None else model_error
        self.answers = AnswerBuilder(self.run, self.work, reproduced, error, self._warnings, replayer.fresh)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        seeds: int = SEEDS,
        model_error: ModelError | None = None,
        unit: rate_unit.Unit | None = None,
        fresh: bool = False,
        names: Path | None = None,
    ) -> Predictor:
        """Open a recording, or an observation, and reproduce its run.

        Args:
            seeds: runs of the simulator for each scenario.
            model_error: the calibrated error; if not given, the one measured here or else the shipped one.
            fresh: whether new devices are in their factory state, rather than worn by long use.
            names: CSV file of the names of tables and indexes, in place of those that the recording has.
        """
        source = open_recorded_source(path)
        if isinstance(source, Observation):
            from tierwise.predict.coarse import CoarseModel

            error = ModelError()  # what was calibrated is the error of replays
            replayer = Replayer(CoarseModel(source), fresh=fresh)
            return cls(source.about, source.warnings, replayer, seeds=seeds, model_error=error, unit=unit)
        replayer = Replayer.open(path, fresh=fresh)
        predictor = cls(
            source.about, source.warnings, replayer, seeds=seeds, model_error=model_error, unit=unit
        )
        predictor.select_from(source, partial(Replayer.open, fresh=fresh), names)
        predictor._buffer = cache(source.buffer)
        return predictor

    def select_from(
        self, recording: Recording, replay: Callable[..., Replayer], names: Path | None = None
    ) -> None:
        """Answer scenarios that place tables, from now on.

        Args:
            recording: the opened one, with its names of tables.
            replay: opens it again, with the keyword ``selected`` for the numbers of files.
            names: CSV file of names, in place of those of the recording.
        """
        relations = cache(lambda: recording.relations(names))  # it reads the whole recording

        def select(selected: tuple[str, ...]) -> Predictor:
            rows = relations().matching(selected)
            files = [file for row in rows for file in row.files]
            if not files:
                raise TierwiseError(
                    f"{', '.join(selected)}: no file was used while the database was recorded",
                    "name tables that the load uses; tierwise profile --by file lists them",
                )
            predictor = Predictor(
                self.about,
                self._own_warnings,
                replay(recording.path, selected=files),
                seeds=len(self._seeds),
                model_error=self._model_error,
                unit=self._unit,
            )
            predictor._selected, predictor._relations = selected, self._relations
            predictor._buffer = self._buffer
            return predictor

        self._select, self._relations = select, relations

    @property
    def relations(self) -> Relations | None:
        """Tables and indexes of the recording; ``None`` of an observation, which does not tell them apart."""
        return self._relations() if self._relations else None

    def selecting(self, selected: tuple[str, ...]) -> Predictor:
        """The same recording with the files of these tables and indexes apart from those of their role.

        It is a recording of its own in memory, so only the last one is kept.

        Raises:
            TierwiseError: a name that the recording does not have, or an observation.
        """
        if selected == self._selected:
            return self
        if self._select is None:
            raise TierwiseError(
                f"{', '.join(selected)}: an observation does not tell tables apart",
                "record the database with tierwise record",
            )
        if self._selecting is None or self._selecting._selected != selected:
            self._selecting = None  # before the next one is made
            self._selecting = self._select(selected)
        return self._selecting

    @property
    def demands(self) -> Demands:
        """What one of the counted units asks and waits for, with processor time as replayed."""
        whole = self.replayer.work.demands.with_cpu_times(self.replayer.cpu_scale)
        each = self.run.requests_per_transaction if self.run.unit == "requests" else None
        return whole.shared_by(each) if each else whole

    @property
    def as_recorded(self) -> Prediction:
        """The recorded run: the reference of every speed-up."""
        return self.answers.prediction(Scenario(), self._base, Uncertainty())

    @cached_property
    def spaces(self) -> dict[Role, role_space.RoleSpace]:
        """The space that the files of each role may need."""
        written = {role: load.written_bytes_per_s for role, load in self.as_recorded.io.items()}
        return role_space.role_spaces(self.about, self.work.footprints, written)

    def predict(self, scenarios: Sequence[Scenario], *, seeds: int | None = None) -> list[Prediction]:
        """Answer each scenario, in order.

        Args:
            seeds: runs of the simulator for each, at most those that the recorded run was replayed with.
        """
        answered: dict[int, Prediction] = {}
        for selected in dict.fromkeys(scenario.selected for scenario in scenarios):
            places = [place for place, scenario in enumerate(scenarios) if scenario.selected == selected]
            answers = self.selecting(selected)._predict([scenarios[place] for place in places], seeds)
            answered |= dict(zip(places, answers, strict=True))
        return [answered[place] for place in range(len(scenarios))]

    def _predict(self, scenarios: Sequence[Scenario], seeds: int | None) -> list[Prediction]:
        """Answer scenarios with the same selected tables."""
        numbers = self._seeds if seeds is None else self._seeds[:seeds]
        scenarios = [
            scenario_machine.scenario_with_growth(
                scenario_machine.scenario_on_instance(scenario, self.work), self.run, self.work
            )
            for scenario in scenarios
        ]
        refused = [self.refusal(scenario) for scenario in scenarios]
        open_ = [scenario for scenario, answer in zip(scenarios, refused, strict=True) if answer is None]
        asked = [self.requests(scenario, numbers) for scenario in open_]
        answers = iter(self.replayer.ask([request for each in asked for request in each]) if asked else [])
        answered = iter(
            self.answer(scenario, each, [next(answers) for _ in each])
            for scenario, each in zip(open_, asked, strict=True)
        )
        return [answer or next(answered) for answer in refused]

    def refusal(self, scenario: Scenario) -> Prediction | None:
        """The refused answer to a scenario that the recording cannot answer; ``None`` if it can."""
        why = (
            uncertainty.scenario_refusal(scenario, self.work, self.about.role_bytes)
            or database_settings.settings_refusal(scenario.settings, self.about)
            or self._smaller_buffer_refusal(scenario)
        )
        return self._refused(scenario, why) if why else None

    def _smaller_buffer_refusal(self, scenario: Scenario) -> Refusal | None:
        if not uncertainty.has_smaller_buffer(scenario, self.work):
            return None
        held, sizes = self._buffer(), list[int]()
        if held and self.about.engine == "postgres" and (found := self.relations):
            tables = [row.size_bytes for row in found.rows if not row.relation.is_index]
            sizes = [*tables, *(file.size_bytes for file in found.unnamed)]
        known = sizes or self.about.engine != "postgres"
        recorded_bytes = self.work.page_cache.engine_bytes
        return uncertainty.smaller_buffer_refusal(scenario, recorded_bytes, held, sizes if known else None)

    def requests(
        self,
        scenario: Scenario,
        seeds: Sequence[int],
        span_s: float = SPAN_S,
        enough: int | None = None,
    ) -> list[SimulationRequest]:
        """A scenario under each seed, then with other assumptions, within which the intervals reach.

        They are about reads that are left open, about devices, and about processor time of commits that stop
        waiting for the log.

        Args:
            scenario: what to change; ``growth`` has no effect without
                :func:`scenario_machine.scenario_with_growth`.
            seeds: at least one.
            span_s: counted virtual time.
            enough: counted transactions after which a simulation may stop before ``span_s``.
        """
        if uncertainty.has_smaller_buffer(scenario, self.work):  # it holds all, or it would be refused
            scenario = scenario.changed(buffer_bytes=None)
        open_reads = uncertainty.memory_assumptions(scenario, self.work)
        scenario, *least_and_most_cpu = self._with_other_cpu(scenario)
        # Where no device has a range, one of its ends stands for both.
        ends = (
            ENDS
            if uncertainty.devices_with_ranges(scenario, self.work)
            else ENDS[: len(least_and_most_cpu) // 2]
        )
        return [
            *(SimulationRequest(scenario, seed, span_s, enough=enough) for seed in seeds),
            *(SimulationRequest(scenario, seeds[0], span_s, misses, enough) for misses in open_reads),
            *(
                SimulationRequest(other, seeds[0], span_s, enough=enough, end=end)
                for other, end in product(least_and_most_cpu or [scenario], ends)
            ),
        ]

    def _with_other_cpu(self, scenario: Scenario) -> list[Scenario]:
        """Where commits stop waiting: the same with less processor time for each transaction, then both ends.

        The recording does not tell how much of it goes with the wait: from nothing to what the bound assumes.
        The middle is taken.
        """
        if not database_settings.ends_log_flushes(scenario.settings, self.about):
            return [scenario]
        least = bounds.least_cpu_share(scenario, self.work)
        shares = ((1 + least) / 2, least, 1.0)
        return [
            scenario.changed(cpu_speed=min(scenario.cpu_speed / share, MOST_CPU_SPEED)) for share in shares
        ]

    def answer(
        self,
        scenario: Scenario,
        asked: Sequence[SimulationRequest],
        answers: Sequence[SimulationOutcome | Refusal],
    ) -> Prediction:
        """The answer from the outcomes of :meth:`requests`.

        Args:
            scenario: the same.
            asked: the requests, those of the first seeds first; at most the seeds that the recorded run was
                replayed with.
            answers: one for each, in order.
        """
        why = next((answer for answer in answers if isinstance(answer, Refusal)), None)
        if why:
            return self._refused(scenario, why)
        outcomes = [answer for answer in answers if isinstance(answer, SimulationOutcome)]
        pairs = list(zip(asked, outcomes, strict=True))
        likely = [outcome for ask, outcome in pairs if ask.is_likely]
        extremes = [
            self.answers.rate_of(outcome) for ask, outcome in pairs if ask.misses != uncertainty.LIKELY
        ]
        ends = [outcome for ask, outcome in pairs if ask.end]
        unsure = uncertainty.uncertainty_of(scenario, self.work, self.about.stolen_cpu_share)
        unsure.warnings += database_settings.settings_warnings(scenario.settings, self.about)
        unsure.warnings += scenario_machine.instance_warnings(scenario, self.work, self.about)
        if uncertainty.has_smaller_buffer(scenario, self.work) and (held := self._buffer()):
            unsure.warnings.append(uncertainty.smaller_buffer_warning(held))
        uncertainty.widen_for_memory(scenario, self.work, extremes, self.answers.rate_of(likely[0]), unsure)
        answer = self.answers.prediction(scenario, likely, unsure, ends)
        if scenario.growth:  # first, as the answer is for another device
            full = role_space.device_full_warnings(scenario, self.about, self.spaces)
            answer = answer.changed(warnings=[*full, *answer.warnings])
        return database_settings.upper_bound_answer(answer, self.about, self._base[0])

    def _refused(self, scenario: Scenario, why: Refusal) -> Prediction:
        return Prediction(scenario=scenario, refused=why, warnings=self._warnings, unit=self.run.unit)
