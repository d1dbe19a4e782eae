"""Simulations of one recording on a cluster: a pure function from a task to answers, and its caller."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tierwise import _core
from tierwise.device_models.profiles import ProfileTexts, compile_profile, profile_texts_of
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import Executor, LostTask
from tierwise.model.names import resolved_path
from tierwise.predict.replayer import Progress, ReplayCore, Replayer, SimulationDistributor

if TYPE_CHECKING:
    from tierwise.cluster.remote import RecordingCache

_MOST_REQUESTS = 8
"""Most requests of a task. A request takes 2 ms and more, the scheduler 3 ms (docs/how-to/fleet.md)."""
_LEAST_TASKS = 64
"""Tasks of one question, unless it has fewer requests, so that many workers share it."""


@dataclass(frozen=True)
class SimulationTask:
    """Some simulations of a recording."""

    uri: str
    """Absolute path or URI of the recording, the same on every host."""
    checksum: str
    """Its :func:`~tierwise.cluster.remote.recording_fingerprint`."""
    without: tuple[str, ...] = ()
    """Mechanisms of the model that are switched off."""
    profiles: tuple[ProfileTexts, ...] = ()
    requests: str = "[]"
    """JSON list of scenarios with seeds, as ``Core.predict`` takes them."""


def run_simulations(task: SimulationTask) -> str:
    """The answers to the requests, in their order, as JSON; depends on nothing but the task."""
    try:
        replayer = _recordings_of_worker().get(task.uri, task.checksum, task.without)
    except TierwiseError as error:
        raise type(error)(f"a worker of the cluster: {error.message}", error.fix) from error
    return replayer.simulate(task.requests, [compile_profile(texts) for texts in task.profiles])


@cache
def _recordings_of_worker() -> RecordingCache:
    """Those of this process, which is a worker."""
    from tierwise.cluster.remote import RecordingCache

    return RecordingCache()


class ClusterReplay:
    """A core whose simulations are done elsewhere; the recorded run is reproduced here."""

    def __init__(self, core: ReplayCore, engine: Executor, task: SimulationTask, progress: Progress) -> None:
        self._core, self._engine, self._task, self._progress = core, engine, task, progress

    def work(self) -> str:
        """As the core's."""
        return self._core.work()

    def reproduce(self, options: str, threads: int) -> str:
        """As the core's."""
        return self._core.reproduce(options, threads)

    def predict(self, scenarios: str, profiles: Sequence[_core.Profile], threads: int) -> str:  # noqa: ARG002
        """As the core's. The number of threads is each worker's own."""
        asked = json.loads(scenarios)
        size = max(1, min(_MOST_REQUESTS, len(asked) // _LEAST_TASKS))
        parts = [asked[start : start + size] for start in range(0, len(asked), size)]
        task = replace(self._task, profiles=tuple(map(profile_texts_of, profiles)))
        answers: list[list[object]] = [[] for _ in parts]
        done = 0
        for number, answer in self._engine.run(
            run_simulations, [replace(task, requests=json.dumps(part)) for part in parts]
        ):
            if isinstance(answer, LostTask):
                raise TierwiseError(f"{self._task.uri}: {answer.problem}", answer.fix)
            answers[number] = json.loads(answer)
            done += len(answers[number])
            self._progress(done, len(asked))
        return json.dumps([outcome for part in answers for outcome in part])


@contextmanager
def distribution_to_cluster(
    scheduler: str | None, workers: int | None, *, trusted: bool = False
) -> Iterator[SimulationDistributor]:
    """A function that moves the simulations of an opened recording to a cluster; none without one."""
    if scheduler is None and workers is None:
        yield lambda *_: None
        return
    from tierwise.cluster.dask_executor import open_executor  # with all that a cluster needs

    with open_executor(scheduler, workers, trusted=trusted) as engine:
        yield _distribute_to(engine)


def _distribute_to(engine: Executor) -> SimulationDistributor:
    def distribute(replayer: Replayer, path: Path, without: Sequence[str] = ()) -> None:
        if replayer.work.from_waits:
            return  # an observation has no simulations
        from tierwise.cluster.remote import recording_fingerprint

        uri = str(resolved_path(path))
        task = SimulationTask(uri, recording_fingerprint(uri), tuple(without))
        replayer.distribute(lambda core, progress: ClusterReplay(core, engine, task, progress))

    return distribute
