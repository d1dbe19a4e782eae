"""The coarse model: answers from an observation, in place of the replay of a recording.

Rates are those of :mod:`tierwise.predict.mean_value_analysis`. The time of a request on a new device is that
of its model (:mod:`tierwise.predict.coarse_waits`): a flush of the log is one write and one flush, a read of
a page one random read, both behind the requests of the other clients. What waits leave open is answered three
times: as is likely, at worst and at best. The interval of an answer contains all three.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any

from tierwise import _core
from tierwise.model.placement import Role
from tierwise.predict import coarse_waits, mean_value_analysis, observed_work
from tierwise.predict.coarse_waits import Case, PlacementWaits
from tierwise.predict.observed_work import LogDemand
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import (
    SimulatedLatency,
    SimulatedRoleIo,
    SimulationOutcome,
    WorkSummary,
)
from tierwise.recording.observation import PARTS, Observation

_ELAPSED_S = 1000.0
"""Time that an outcome counts requests over: long enough for whole numbers of rare ones."""
_ROUNDS = 40
_NEAR = 1e-4
"""Relative change of the rate at which a solution has settled."""
_NO_LATENCY = SimulatedLatency(p50_us=0.0, p95_us=0.0, p99_us=0.0)
_CASES: tuple[Case, ...] = ("likely", "worst", "best")


class CoarseModel:
    """An observation with the interface of ``tierwise._core.Replay``."""

    def __init__(self, seen: Observation) -> None:
        """Find the work of a transaction.

        Raises:
            TierwiseError: if transactions were not counted.
        """
        self._seen = seen
        self._work = observed_work.observed_work_of(seen)
        self._drawn = cache(self._draw)
        self._base = cache(lambda seed, case: self._solve(Scenario(), {}, seed, case, worn=False))

    def work(self) -> str:
        """JSON of the work of a transaction."""
        return self._work.model_dump_json()

    def reproduce(self, options: str, threads: int) -> str:  # noqa: ARG002  (the interface's)
        """JSON of the observed run under each seed, and the error of its rate."""
        outcomes = [self._base(seed, "likely") for seed in json.loads(options)["seeds"]]
        rate = fmean(outcome.transactions / outcome.elapsed_s for outcome in outcomes)
        error = rate / self._work.observed.transactions_per_s - 1
        return json.dumps({"outcomes": [_fields(outcome) for outcome in outcomes], "error": error})

    def predict(
        self,
        scenarios: str,
        profiles: Sequence[_core.Profile],
        threads: int,  # noqa: ARG002
    ) -> str:
        """JSON of the outcome of each scenario, or why it has none."""
        return json.dumps([self._answer(asked, profiles) for asked in json.loads(scenarios)])

    def _answer(self, asked: Mapping[str, Any], profiles: Sequence[_core.Profile]) -> dict[str, Any]:
        if refused := self._refusal(asked):
            return {"refused": refused}
        machine = Scenario(cores=asked["cores"], clients=asked["clients"], cpu_speed=asked["cpu_speed"])
        placed = {Role(role): profiles[place["profile"]] for role, place in asked["placement"].items()}
        seed = asked["seed"]
        likely, *others = (self._solve(machine, placed, seed, case, worn=asked["worn"]) for case in _CASES)
        faster = likely.transactions / max(self._base(seed, "likely").transactions, 1)
        alternatives = [
            other.transactions / max(self._base(seed, case).transactions, 1) / max(faster, 1e-9)
            for case, other in zip(_CASES[1:], others, strict=True)
        ]
        warnings = coarse_waits.unknowns_of_placement(self._seen, self._work, self._drawn(seed)[1], placed)
        warnings += coarse_waits.busier_devices_warning(self._work, placed, faster)
        prediction = likely.model_copy(update={"alternatives": alternatives, "warnings": warnings})
        return {"outcome": _fields(prediction)}

    def _refusal(self, asked: Mapping[str, Any]) -> dict[str, str] | None:
        if asked["rate_per_s"] is not None:
            return {
                "message": "arrivals at a rate cannot be answered from waits only",
                "fix": "leave out --rate and --growth, or use a recording",
            }
        if asked["cores"] is not None and self._seen.cores is None:
            return {
                "message": "another number of cores cannot be answered: the server's own was not given",
                "fix": "observe with --cores, or leave out --cores",
            }
        return None

    def _solve(
        self,
        machine: Scenario,
        placed: Mapping[Role, _core.Profile],
        seed: int,
        case: Case,
        *,
        worn: bool,
    ) -> SimulationOutcome:
        """The rate at which waits, queues and rate agree, by damped iteration."""
        work, log = self._drawn(seed)
        waits = PlacementWaits(self._seen, work, log, placed, case, worn)
        if self._seen.cores is None and case == "worst":
            fewest = max(math.ceil(self._seen.sessions_in("cpu")), 1)
            work = work.model_copy(update={"cores": min(fewest, work.cores)})
        rate = work.observed.transactions_per_s
        for _ in range(_ROUNDS):
            outcome = _outcome(machine, work, waits, rate)
            new = mean_value_analysis.mean_value_rate_per_s(machine, work, outcome, rate) or rate
            if abs(new / rate - 1) < _NEAR:
                break
            rate = math.sqrt(rate * new)
        return _outcome(machine, work, waits, rate)

    def _draw(self, seed: int) -> tuple[WorkSummary, LogDemand]:
        """The work with each class's share of the time drawn within its sampling error."""
        seen, chance = self._seen, random.Random(seed)
        factors = {}
        for name in PARTS:
            here = seen.sessions_in(name)
            error = seen.sampling_errors.get(name, 0.0) * seen.sessions / 1.96
            factors[name] = max(here + chance.gauss(0.0, error), here / 10) / here if here > 0 else 1.0
        scaled = [
            wait.model_copy(update={"sessions": wait.sessions * factors[wait.wait_class]})
            for wait in seen.waits
        ]
        whole = seen.sessions / max(sum(wait.sessions for wait in scaled), 1e-9)
        drawn = [wait.model_copy(update={"sessions": wait.sessions * whole}) for wait in scaled]
        running = min(seen.running * factors["cpu"] * whole, seen.cores or math.inf)
        now = seen.model_copy(update={"waits": drawn, "running": running})
        work = observed_work.observed_work_of(now)
        return work, observed_work.log_demand(now, work)


def _outcome(
    machine: Scenario, work: WorkSummary, waits: PlacementWaits, rate_per_s: float
) -> SimulationOutcome:
    """The state of the machine at a rate."""
    clients = machine.clients or work.sessions
    response_us = clients * 1e6 / rate_per_s
    times_us = waits.times_us(rate_per_s, clients)
    flush_us, commits = waits.flush_us(rate_per_s), waits.commits
    offered = rate_per_s * commits * flush_us / 1e6
    flushes_per_s = (
        mean_value_analysis.flushing_share(offered) * 1e6 / flush_us if flush_us > 0 else rate_per_s * commits
    )
    cpu_us = work.demands.cpu_us / machine.cpu_speed
    parts = {**times_us, "cpu": cpu_us, "client": work.demands.think_us}
    rest_us = response_us - sum(parts.values())
    parts["log_device"] = min(commits * flush_us, max(rest_us, 0.0)) if commits else 0.0
    parts["log_queue"] = min(
        mean_value_analysis.log_wait_us(commits, rate_per_s / 1e6, flush_us) - commits * flush_us,
        max(rest_us - parts["log_device"], 0.0),
    )
    parts["runnable"] = max(response_us - sum(parts.values()), 0.0)
    cores = machine.cores or work.cores
    return SimulationOutcome(
        elapsed_s=_ELAPSED_S,
        turns=round(rate_per_s * _ELAPSED_S),
        transactions=round(rate_per_s * _ELAPSED_S),
        latency=_NO_LATENCY,
        shares={part: time_us / response_us for part, time_us in parts.items()},
        commits_per_flush=rate_per_s * commits / flushes_per_s if flushes_per_s else 0.0,
        busy_share=min(rate_per_s * cpu_us / 1e6 / cores, 1.0),
        io=_io(waits, rate_per_s, flushes_per_s, flush_us),
        warnings=[],
    )


def _io(
    waits: PlacementWaits, rate_per_s: float, flushes_per_s: float, flush_us: float
) -> list[SimulatedRoleIo]:
    """Requests of each role: flushes of the log as modelled, calls for pages as the server counted them."""
    log = SimulatedRoleIo(
        role=Role.LOG,
        reads=0,
        writes=round(flushes_per_s * _ELAPSED_S),
        flushes=round(flushes_per_s * _ELAPSED_S),
        read_bytes=0,
        written_bytes=round(waits.log_bytes * rate_per_s * _ELAPSED_S),
        busy_s=flushes_per_s * flush_us / 1e6 * _ELAPSED_S,
    )
    return [*([log] if flushes_per_s > 0 else []), *waits.page_io(rate_per_s, _ELAPSED_S)]


def _fields(outcome: SimulationOutcome) -> dict[str, Any]:
    """An outcome in the simulator's form, with its shares as pairs."""
    return {**outcome.model_dump(mode="json"), "shares": list(outcome.shares.items())}
