"""Makes an answer from outcomes of the simulator: intervals, bound and warnings.

The value of a rate is the recorded one times the ratio of two replays, of the scenario and of the recorded
run: the error of the reproduced run is assumed to be the same factor everywhere. That it may not be is one
of the independent errors of the interval. Likewise for percentiles of latency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tierwise.model.errors import TierwiseError
from tierwise.model.numbers import signed_percent_text
from tierwise.model.placement import Role
from tierwise.model.units import significant_text
from tierwise.predict import answer_assumptions, bounds, estimates, mean_value_analysis
from tierwise.predict.inseparable_roles import inseparable_roles_of, parted_role_groups
from tierwise.predict.model_error import ModelError, Storage, What, storage_transition
from tierwise.predict.named_devices import probe_doubts, roles_lost_at_stop
from tierwise.predict.prediction import Bound, Estimate, Prediction, RecordedRun, RoleLoad
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import (
    CHANCE,
    ReproducedRun,
    SimulationOutcome,
    WorkSummary,
    computing_share,
)
from tierwise.predict.uncertainty import Uncertainty

UNVALIDATED_HALF_WIDTHS: dict[What, float] = {"rate": 0.2, "p50": 0.2, "p95": 0.4, "p99": 0.4}
"""Half widths of the logarithm for a model that was never validated. For rates: the worst error of published
replay; for tail latencies: twice that, by judgement. A percentile is never surer than the rate: with a fixed
number of clients, latency is its inverse."""
_FEW = (
    "not validated: too few predictions of this kind of engine, from this storage to that, were measured, "
    "so the intervals include "
)
NOT_VALIDATED = _FEW + "a guessed error of the model: 20\u00a0%, and 40\u00a0% for p95 and p99"
SETTINGS_UNCALIBRATED = (
    "intervals are not calibrated for a change of settings: the error may be greater than they hold"
)
VALIDATED_ELSEWHERE = _FEW + "the error of the model that was measured on all engines together"
_LEAST_WAITING = 20
_MOST_WAITING_SHARE = 0.03
"""Most transactions that may wait at the end at a sustainable rate: a number plus a share of the arrivals."""
MOST_SPAN = 4.0
"""Ratio of an interval's high end to its low end above which the replay gives no answer."""


class AnswerBuilder:
    """Answers from one recording."""

    def __init__(
        self,
        run: RecordedRun,
        work: WorkSummary,
        reproduced: ReproducedRun,
        model_error: ModelError,
        warnings: Sequence[str],
        fresh: bool,
    ) -> None:
        self._run, self._work, self._error = run, work, model_error
        self._warnings, self._fresh = warnings, fresh
        self._together = inseparable_roles_of(run.engine, work.footprints)
        self._base = reproduced.outcomes
        self._base_computing = computing_share(_shares(self._base), work.demands)
        self._over_recorded = max(1 + reproduced.error, 1e-9)
        errors = (reproduced.latency_error, reproduced.p95_error, reproduced.p99_error)
        self._percentile_errors = dict(zip(("p50", "p95", "p99"), errors, strict=True))

    def rate_of(self, outcome: SimulationOutcome) -> float:
        """Transactions or requests a second of one outcome, as replayed."""
        done = outcome.transactions if self._run.unit == "transactions" else outcome.turns
        return done / outcome.elapsed_s if outcome.elapsed_s > 0 else 0.0

    def rates(self, scenario: Scenario, outcome: SimulationOutcome) -> list[float]:
        """The same over the reproduced run's error, then under every other assumption."""
        arrivals = self._work.arrivals_per_s(scenario)
        if arrivals and not is_saturated(arrivals, outcome):
            return [self.rate_of(outcome) if scenario.rate_per_s else arrivals]
        rate = self.rate_of(outcome) / self._over_recorded
        return [rate, *(rate * times for times in outcome.alternatives)]

    def percentiles_us(self, outcome: SimulationOutcome) -> list[float]:
        """The median, 95th and 99th percentile of latencies, over the reproduced run's error."""
        return [time_us * self._over_recorded for time_us in outcome.latency.percentiles_us]

    def bound(self, scenario: Scenario) -> Bound | None:
        """The upper bound of a scenario's rate; ``None`` if the scenario changes nothing."""
        return (
            bounds.rate_upper_bound(scenario, self._work, self._run.rate_per_s) if scenario.changes else None
        )

    def prediction(
        self,
        scenario: Scenario,
        outcomes: Sequence[SimulationOutcome],
        uncertainty: Uncertainty,
        ends: Sequence[SimulationOutcome] = (),
    ) -> Prediction:
        """The answer to a scenario.

        Args:
            scenario: what was asked.
            outcomes: one for each seed, the same seeds as those of the recorded run.
            ends: under the first seed, with the ends of the devices' ranges; the intervals contain them.
        """
        series = _by_assumption([self.rates(scenario, outcome) for outcome in outcomes])
        series += _moved(series[0], [self.rates(scenario, outcome)[0] for outcome in ends])
        recorded = [self.rates(Scenario(), outcome)[0] for outcome in self._base][: len(outcomes)]
        if 0 in recorded:
            raise TierwiseError(
                f"replaying the recorded run ends none of its {self._run.unit}",
                "record again for longer, while nothing else runs and the load is steady",
            )
        ratios = [[now / before for now, before in zip(rates, recorded, strict=True)] for rates in series]
        gained = self._gained(outcomes)
        arrivals = self._work.arrivals_per_s(scenario)
        saturated = any(is_saturated(arrivals, outcome) for outcome in outcomes)
        widths = [*uncertainty.half_widths, *self._half_widths(scenario, "rate", gained)]
        if arrivals and not saturated:
            # The recorded rate of arrivals is of a sample.
            widths = [] if scenario.rate_per_s else [self._work.chance]
        bound = self.bound(scenario)
        rate = estimates.estimate_spanning_series(series, widths)
        times = estimates.estimate_spanning_series(ratios, widths) if scenario.changes else _ONE
        if bound:
            rate, times = (
                estimates.estimate_capped_at(rate, bound.rate_per_s),
                estimates.estimate_capped_at(times, bound.speedup),
            )
        p50_us, p95_us, p99_us = self._latencies(scenario, outcomes, uncertainty, gained, ends)
        simulated = sum(map(self.rate_of, outcomes)) / len(outcomes)
        analysed = None
        if not self._work.from_waits:  # whose rates are of this analysis themselves
            analysed = mean_value_analysis.mean_value_rate_per_s(scenario, self._work, outcomes[0], simulated)
        return Prediction(
            scenario=scenario,
            once=self._work.once,
            unit=self._run.unit,
            from_waits=self._run.from_waits,
            rate_per_s=rate,
            seed_rates_per_s=series[0],
            elapsed_s=rate and estimates.inverse_estimate(rate, self._recorded_units),
            speedup=times,
            bound=bound,
            bounds_only=rate is not None and rate.high > MOST_SPAN * rate.low,
            saturated=saturated,
            mean_value_per_s=analysed,
            p50_us=p50_us,
            p95_us=p95_us,
            p99_us=p99_us,
            shares=self._spent(scenario, outcomes),
            gained_computing=gained,
            commits_per_flush=sum(outcome.commits_per_flush for outcome in outcomes) / len(outcomes),
            cpu_busy_share=sum(outcome.busy_share for outcome in outcomes) / len(outcomes),
            io=self._io(scenario, outcomes[0]),
            lost_at_stop=roles_lost_at_stop(scenario.devices_of(self._work.footprints)),
            seeds=len(outcomes),
            validated=self._error.find(self._run.engine, self._path(scenario), "rate") is not None,
            notes=answer_assumptions.assumption_notes(
                scenario, self._run, self._work, (self._base[0], outcomes[0]), self._fresh
            ),
            cross_checks=[
                difference
                for difference in [mean_value_analysis.mean_value_disagreement(analysed, simulated)]
                if difference
            ],
            warnings=self._all_warnings(scenario, [*outcomes[0].warnings, *uncertainty.warnings]),
        )

    def _spent(self, scenario: Scenario, outcomes: Sequence[SimulationOutcome]) -> dict[str, float]:
        """Where the sessions' time goes: of the recorded run as recorded, since a replay leaves waits out."""
        recorded = {} if scenario.changes or self._run.from_waits else self._work.observed.shares
        return recorded or _shares(outcomes)

    def _latencies(
        self,
        scenario: Scenario,
        outcomes: Sequence[SimulationOutcome],
        uncertainty: Uncertainty,
        gained: float,
        ends: Sequence[SimulationOutcome],
    ) -> list[Estimate | None]:
        """The percentiles, each with its own calibrated error."""
        each = [self.percentiles_us(outcome) for outcome in outcomes]
        at_ends = [self.percentiles_us(outcome) for outcome in ends]
        whats: tuple[What, ...] = ("p50", "p95", "p99")
        series = [[values[number] for values in each] for number in range(len(whats))]
        return [
            estimates.estimate_spanning_series(
                [series[number], *_moved(series[number], [values[number] for values in at_ends])],
                [*uncertainty.half_widths, *self._half_widths(scenario, what, gained)],
            )
            for number, what in enumerate(whats)
        ]

    def _gained(self, outcomes: Sequence[SimulationOutcome]) -> float:
        """Share of the sessions' time on processors beyond that of the recorded run."""
        return max(computing_share(_shares(outcomes), self._work.demands) - self._base_computing, 0.0)

    def _path(self, scenario: Scenario) -> str:
        recorded: Storage = "emulated" if any(device.profile for device in self._work.devices) else "real"
        if "placement" not in scenario.changes:
            return storage_transition(recorded, recorded)
        return storage_transition(recorded, "emulated" if scenario.emulated else "real")

    def _half_widths(self, scenario: Scenario, what: What, gained: float) -> list[float]:
        """The error of the reproduced run, and the calibrated one of the model for anything else."""
        error = self._over_recorded - 1 if what == "rate" else self._percentile_errors.get(what)
        reproduced = abs(math.log(max(1 + error, 0.1))) if error else 0.0
        if not scenario.changes:
            return [reproduced]
        engine, path = self._run.engine, self._path(scenario)
        if calibrated := self._error.nearest(engine, path, what):
            return [reproduced, calibrated.at(gained)]
        of_rate = self._error.nearest(engine, path, "rate")
        return [reproduced, max(UNVALIDATED_HALF_WIDTHS[what], of_rate.at(gained) if of_rate else 0.0)]

    def _all_warnings(self, scenario: Scenario, own: Sequence[str]) -> list[str]:
        """Warnings of the recording, of the scenario and of the calibrated error, each once."""
        doubted = probe_doubts(scenario.devices_of(self._work.footprints))
        warnings = [*doubted, *self._cannot_be_parted(scenario), *self._warnings, *own]
        if abs(self._run.error) > CHANCE:
            warnings.append(
                f"replaying the recorded run gives {significant_text(self._run.reproduced_rate_per_s)} "
                f"{self._run.unit}/s where {significant_text(self._run.rate_per_s)} were recorded "
                f"({signed_percent_text(self._run.error)}): the interval is wider for it"
            )
        if not scenario.changes:
            return list(dict.fromkeys(warnings))
        if scenario.rate_per_s:
            warnings.append(
                "transactions arrive at random, at an even rate: real ones that come in bursts wait longer"
            )
        elif arrivals := self._work.arrivals_per_s(scenario):
            warnings.append(
                f"transactions arrived by a schedule, {significant_text(arrivals)} a second, "
                "whether or not earlier ones were done: a faster device answers them sooner, and does not "
                "make more of them"
            )
        engine, path = self._run.engine, self._path(scenario)
        if scenario.settings and self._error.uncalibrated(engine, path, ["settings"]):
            warnings.append(SETTINGS_UNCALIBRATED)
        changes = [change for change in scenario.changes if change != "settings"]
        if self._error.find(engine, path, "rate") is None:
            elsewhere = self._error.nearest(engine, path, "rate") is not None
            warnings.append(VALIDATED_ELSEWHERE if elsewhere else NOT_VALIDATED)
        elif untried := self._error.uncalibrated(engine, path, changes):
            names = " and ".join(name.replace("cpu_speed", "CPU speed") for name in untried)
            warnings.append(
                f"no validation has tried a change of {names}: the error may be greater than calibrated"
            )
        return list(dict.fromkeys(warnings))

    def _cannot_be_parted(self, scenario: Scenario) -> list[str]:
        """What the engine does not allow of a placement."""
        groups = parted_role_groups(self._together, scenario.devices_of(Role)) if self._together else []
        return [
            f"no setting makes this placement: {group.because}, "
            f"so that {' and '.join(group.roles)} move as one"
            for group in groups
        ]

    @property
    def _recorded_units(self) -> float:
        """Transactions or requests of the whole recording, including the time between its bursts."""
        if self._work.once:
            counted = self._run.unit == "transactions"
            return float(self._work.transactions if counted else self._work.turns)
        return self._run.rate_per_s * self._run.duration_s

    def _io(self, scenario: Scenario, outcome: SimulationOutcome) -> dict[Role, RoleLoad]:
        devices = scenario.devices_of([role_io.role for role_io in outcome.io])
        elapsed_s = outcome.elapsed_s or 1.0
        return {
            role_io.role: RoleLoad(
                device=devices[role_io.role],
                size_bytes=self._work.footprints.get(role_io.role, 0),
                reads_per_s=role_io.reads / elapsed_s,
                writes_per_s=role_io.writes / elapsed_s,
                flushes_per_s=role_io.flushes / elapsed_s,
                read_bytes_per_s=role_io.read_bytes / elapsed_s,
                written_bytes_per_s=role_io.written_bytes / elapsed_s,
                busy_share=role_io.busy_s / elapsed_s,
            )
            for role_io in outcome.io
        }


def _moved(series: Sequence[float], ends: Sequence[float]) -> list[list[float]]:
    """The series as it would be at each end, given the first seed's figures at the ends."""
    return [[figure * end / series[0] for figure in series] for end in ends if series[0] > 0]


def is_saturated(arrivals_per_s: float | None, outcome: SimulationOutcome) -> bool:
    """Whether more transactions wait for a session than chance explains."""
    arrived = (arrivals_per_s or 0.0) * outcome.elapsed_s
    return outcome.waiting > _LEAST_WAITING + _MOST_WAITING_SHARE * arrived


_ONE = Estimate(value=1.0, low=1.0, high=1.0)


def _shares(outcomes: Sequence[SimulationOutcome]) -> dict[str, float]:
    """The mean over outcomes."""
    return {
        name: sum(outcome.shares.get(name, 0.0) for outcome in outcomes) / len(outcomes)
        for name in outcomes[0].shares
    }


def _by_assumption(each: Sequence[Sequence[float]]) -> list[list[float]]:
    """Transpose figures by seed and assumption into figures by assumption and seed."""
    return [list(values) for values in zip(*each, strict=True)]
