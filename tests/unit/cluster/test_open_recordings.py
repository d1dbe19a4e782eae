"""Simulations on a cluster, without one: losses, what cannot be distributed, open recordings."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fleet_factory import EXAMPLES, NVME
from tierwise.cli import app
from tierwise.cluster import remote, simulations
from tierwise.cluster.remote import RecordingCache, recording_fingerprint
from tierwise.cluster.simulations import SimulationTask
from tierwise.device_models.profiles import compile_profile, profile_texts_of
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import Executor, LostTask
from tierwise.predict import Predictor, Scenario, resolve_device

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("cryptography", "distributed", "pyarrow")),
    reason="the extra cluster is not installed",
)
UPDATES = EXAMPLES / "keyed-update"


def on_cluster(engine: Executor, path: Path, seeds: int = 2) -> Predictor:
    predictor = Predictor.open(path, seeds=seeds)
    simulations._distribute_to(engine)(predictor.replayer, path)
    return predictor


def task_of(path: Path) -> SimulationTask:
    return SimulationTask(str(path), recording_fingerprint(str(path)))


def test_a_question_that_no_worker_survives(tmp_path: Path) -> None:
    class Fatal:
        def run(self, _: object, tasks: list[object]) -> Iterator[tuple[int, LostTask]]:
            yield 0, LostTask("each worker that began it died", "use a larger machine")

    with pytest.raises(TierwiseError, match="keyed-update: each worker that began it died"):
        on_cluster(Fatal(), UPDATES).predict([Scenario(placement={"log": NVME})])


def test_what_cannot_be_distributed_says_so() -> None:
    pair = [str(UPDATES), str(EXAMPLES / "order-entry")]
    place = "keyed-update.log=nvme-dc#1,order-entry.log=nvme-dc#1"
    done = CliRunner().invoke(app, ["predict", *pair, "--place", place, "--workers", "2"])
    assert isinstance(done.exception, TierwiseError) and "--workers" in done.exception.message


def test_a_profile_is_compiled_once_in_a_process() -> None:
    profile = resolve_device(NVME).profile.core
    assert compile_profile(profile_texts_of(profile)) is compile_profile(profile_texts_of(profile))
    assert profile_texts_of(compile_profile(profile_texts_of(profile))) == profile_texts_of(profile)


def test_recordings_stay_open_while_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    resident = iter([1, 1, 3, 1, 1])
    monkeypatch.setattr(remote, "_resident_bytes", lambda: next(resident))
    kept = RecordingCache(most_resident_bytes=2)
    first, second, third = (
        task_of(EXAMPLES / name) for name in ("keyed-update", "order-entry", "small-objects")
    )
    opened = kept.get(first.uri, first.checksum)
    kept.get(second.uri, second.checksum)
    assert kept.get(first.uri, first.checksum) is opened and len(kept) == 2
    kept.get(third.uri, third.checksum)  # closes the second, which was used longest ago
    assert kept.get(first.uri, first.checksum) is opened and len(kept) == 2


def test_the_last_recording_stays_open_whatever_its_size() -> None:
    kept = RecordingCache(most_resident_bytes=1)
    task = task_of(UPDATES)
    assert kept.get(task.uri, task.checksum) is kept.get(task.uri, task.checksum) and len(kept) == 1
