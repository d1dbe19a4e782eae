"""Converts scenarios to the simulator's form, and its output to outcomes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.profiles import DeviceProfile, End
from tierwise.model import executor
from tierwise.model.errors import TierwiseError
from tierwise.predict import database_settings, scenario_machine
from tierwise.predict.named_devices import RECORDED, resolve_device
from tierwise.predict.prediction import Refusal
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import ReproducedRun, SimulationOutcome, WorkSummary
from tierwise.predict.uncertainty import LIKELY
from tierwise.recording import RecordingMetadata

SPAN_S = 20.0
"""Counted virtual time of repeated work."""
_REQUESTS_A_STEP = 128
"""Requests between two progress reports: few enough for frequent reports, many enough for all processors."""


class ReplayCore(Protocol):
    """The interface of ``tierwise._core.Replay``; tests have their own implementation."""

    def work(self) -> str:
        """JSON of :class:`WorkSummary`."""

    def reproduce(self, options: str, threads: int) -> str:
        """JSON of :class:`ReproducedRun`."""

    def predict(self, scenarios: str, profiles: Sequence[_core.Profile], threads: int) -> str:
        """JSON list of ``{"outcome": …}`` or ``{"refused": {"message", "fix"}}``."""


Progress = Callable[[int, int], None]
"""Called with the number of simulated requests and the number of all requests."""


@dataclass(frozen=True)
class SimulationRequest:
    """A scenario under one seed."""

    scenario: Scenario
    seed: int
    span_s: float = SPAN_S
    misses: str = LIKELY
    enough: int | None = None
    """Counted transactions after which the simulation may stop before ``span_s``."""
    end: End | None = None
    """Of the ranges of the devices' profiles; their own numbers if ``None``."""

    @property
    def key(self) -> str:
        """Text that only requests with the same answer share."""
        assumed = f"{self.seed} {self.span_s} {self.misses} {self.enough} {self.end}"
        return f"{assumed} {self.scenario.model_dump_json()}"

    @property
    def is_likely(self) -> bool:
        """Whether it makes no extreme assumption."""
        return self.misses == LIKELY and self.end is None


class SimulationDistributor(Protocol):
    """Moves the simulations of an opened recording elsewhere, or does nothing."""

    def __call__(self, replayer: Replayer, path: Path, without: Sequence[str] = ()) -> None:
        """Take a replayer without cached replays, its recording, and the mechanisms that are switched off."""


class Replayer:
    """A recording that can be replayed."""

    def __init__(self, core: ReplayCore, *, fresh: bool = False, threads: int | None = None) -> None:
        """Take an opened core without a replay.

        Args:
            fresh: whether new devices are in their factory state.
            threads: simulations side by side in one call; by default those that ``processors`` counts.
        """
        self._core: ReplayCore = core
        self.fresh = fresh
        self._threads = threads or executor.usable_processors()
        self.cpu_scale = 1.0
        """Processor time in replays over that in bursts, from :meth:`reproduce` on."""
        self.about: RecordingMetadata | None = None
        """Metadata of the recording, which settings of a scenario need."""
        self._at_once = _REQUESTS_A_STEP
        self._kept: dict[str, SimulationOutcome | Refusal] | None = None
        """Answers by request and scale of processor time; ``None`` where none are kept."""
        self._reproduced: dict[str, ReproducedRun] = {}
        self.progress: Progress = lambda *_: None
        self.work = WorkSummary.model_validate(_parsed(core.work))

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        fresh: bool = False,
        without: Sequence[str] = (),
        threads: int | None = None,
        selected: Sequence[int] = (),
    ) -> Replayer:
        """Read a recording and find the work in it.

        Args:
            fresh: whether new devices are in their factory state.
            threads: simulations side by side in one call.
            selected: numbers of the files that get the role ``selected``.
        """
        try:
            return cls(
                _core.Replay(path, profiles.shipped_profile_texts(), without, selected),
                fresh=fresh,
                threads=threads,
            )
        except ValueError as error:
            raise _problem(error) from None

    def remember(self) -> None:
        """Keep answers, so that what is asked again is not replayed again."""
        self._kept = {} if self._kept is None else self._kept

    def distribute(self, core_of: Callable[[ReplayCore, Progress], ReplayCore]) -> None:
        """Let a core simulate that uses other processes. It gets each question whole and reports progress."""
        self._core = core_of(self._core, self._report)
        self._at_once = sys.maxsize

    def _report(self, done: int, of: int) -> None:
        self.progress(done, of)

    def simulate(self, requests: str, profiles: Sequence[_core.Profile]) -> str:
        """Answers to requests in the simulator's own form, a JSON list."""
        return _call_core(partial(self._core.predict, requests, profiles, self._threads))

    def reproduce(self, seeds: Sequence[int], span_s: float = SPAN_S) -> ReproducedRun:
        """Replay the recorded run on its own machine, once for each seed.

        Later requests take processor time as the rate without recording shows it.
        """
        options = json.dumps({"seeds": list(seeds), "span_s": None if self.work.once else span_s})
        reproduced = self._reproduced.get(options)
        if reproduced is None:
            answer = _parsed(lambda: self._core.reproduce(options, self._threads))
            reproduced = self._reproduced[options] = ReproducedRun.model_validate(_listed(answer))
        self.cpu_scale = reproduced.cpu_scale
        return reproduced

    def ask(self, asked: Sequence[SimulationRequest]) -> list[SimulationOutcome | Refusal]:
        """The outcome of each scenario under its seed, in order. Several threads may ask at the same time."""
        if self._kept is None:
            return self._replayed(asked)
        keys = [f"{self.cpu_scale} {request.key}" for request in asked]
        new = {key: request for key, request in zip(keys, asked, strict=True) if key not in self._kept}
        self._kept |= zip(new, self._replayed(list(new.values())), strict=True)
        return [self._kept[key] for key in keys]

    def _replayed(self, asked: Sequence[SimulationRequest]) -> list[SimulationOutcome | Refusal]:
        indexed: dict[str, tuple[int, DeviceProfile]] = {}
        scenarios = [self._scenario(scenario, indexed) for scenario in asked]
        cores = [profile.core for _, profile in indexed.values()]
        answers: list[SimulationOutcome | Refusal] = []
        for start in range(0, len(scenarios), self._at_once):
            text = json.dumps(scenarios[start : start + self._at_once])
            answers += map(_answer, json.loads(self.simulate(text, cores)))
            self.progress(len(answers), len(scenarios))
        return answers

    @staticmethod
    def ask_together(
        replayers: Sequence[Replayer], asked: Sequence[Sequence[SimulationRequest]]
    ) -> list[list[SimulationOutcome] | tuple[int, Refusal]]:
        """Replay several recordings at once; devices with a number are shared.

        Args:
            asked: joint requests, each with one request for each recording.

        Returns:
            For each joint request, in order, the outcome of each recording; or which is refused, and why.

        Raises:
            TierwiseError: one is an observation, which has no requests that could be replayed.
        """
        indexed: dict[str, tuple[int, DeviceProfile]] = {}
        requests = [
            [
                replayer._scenario(each, indexed, together=True)
                for replayer, each in zip(replayers, joint, strict=True)
            ]
            for joint in asked
        ]
        profiles = [profile.core for _, profile in indexed.values()]
        cores = [replayer._replay for replayer in replayers]
        threads = replayers[0]._threads
        answers = _parsed(lambda: _core.predict_together(cores, json.dumps(requests), profiles, threads))
        return [_joint_answer(answer) for answer in answers]

    @property
    def _replay(self) -> _core.Replay:
        if not isinstance(self._core, _core.Replay):
            raise TierwiseError(
                "an observation has waits only: nothing can be replayed beside other databases",
                "record the database with tierwise record",
            )
        return self._core

    def _scenario(
        self,
        asked: SimulationRequest,
        indexed: dict[str, tuple[int, DeviceProfile]],
        *,
        together: bool = False,
    ) -> dict[str, Any]:
        scenario = asked.scenario
        shared = scenario.numbered(self.work.footprints) if together else set()
        set_ = database_settings.settings_for_simulator(scenario.settings, self.about) if self.about else {}
        instance = scenario_machine.instance_limits(scenario, self.work, self.about)
        return {
            "placement": {
                role.value: {
                    "shared" if role in shared else "profile": self._index_of(device, asked.end, indexed)
                }
                for role, device in scenario.devices_of(self.work.footprints).items()
                if device != RECORDED
            },
            "cores": scenario.cores,
            "cpu_speed": scenario.cpu_speed / self.cpu_scale,
            "memory_bytes": scenario.memory_bytes,
            "buffer_bytes": scenario.buffer_bytes,
            "misses": asked.misses,
            "clients": scenario.clients,
            "rate_per_s": self.work.arrivals_per_s(scenario),
            "mode": "once" if self.work.once else {"steady_s": asked.span_s},
            "enough": asked.enough,
            "seed": asked.seed,
            "emulated": scenario.emulated,
            "emulated_flushes": scenario.emulated_flushes,
            "worn": not (self.fresh or scenario.emulated),
            **({"commits": set_} if set_ else {}),
            **({"instance": instance} if instance else {}),
        }

    def _index_of(self, device: str, end: End | None, indexed: dict[str, tuple[int, DeviceProfile]]) -> int:
        """Index of a device in the list passed with the scenarios; a further one of a kind has its own."""
        key = f"{device} {end}" if end else device
        if key not in indexed:
            profile = resolve_device(device).profile
            indexed[key] = (len(indexed), profile.at(end) if end else profile)
        return indexed[key][0]


def _answer(answer: dict[str, Any]) -> SimulationOutcome | Refusal:
    if "refused" in answer:
        return Refusal.model_validate(answer["refused"])
    return SimulationOutcome.model_validate(_listed(answer)["outcome"])


def _joint_answer(answer: dict[str, Any]) -> list[SimulationOutcome] | tuple[int, Refusal]:
    if "refused" in answer:
        return answer["refused"].pop("database"), Refusal.model_validate(answer["refused"])
    return [SimulationOutcome.model_validate(outcome) for outcome in _listed(answer)["outcomes"]]


def _listed(content: Any) -> Any:
    """Outcomes with shares as a mapping, which the simulator writes as a list of pairs."""
    for outcome in content.get("outcomes", [content.get("outcome")]):
        outcome["shares"] = dict(outcome["shares"])
    return content


def _parsed(call: Callable[[], str]) -> Any:
    return json.loads(_call_core(call))


def _call_core(call: Callable[[], str]) -> str:
    try:
        return call()
    except ValueError as error:
        raise _problem(error) from None


def _problem(error: ValueError) -> TierwiseError:
    message, fix = error.args
    return TierwiseError(message, fix)
