"""Simulations of one recording on a cluster: the answers of this process, deaths, wrong files, memory."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fleet_factory import EXAMPLES, GP3, NVME
from support.validation_factory import row
from tierwise.cli import app
from tierwise.cluster import open_recordings, simulations
from tierwise.cluster.dask_executor import executor
from tierwise.cluster.fingerprint import fingerprint
from tierwise.cluster.open_recordings import OpenRecordings
from tierwise.cluster.simulations import PredictTask, simulated
from tierwise.device_models.profiles import compiled, texts_of
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import Executor, Lost
from tierwise.predict import ModelError, Predictor, Scenario, rank, resolve
from tierwise.validation.answers import OpenedRecording

pytestmark = pytest.mark.skipif(
    any(find_spec(one) is None for one in ("cryptography", "distributed", "pyarrow")),
    reason="the extra cluster is not installed",
)
UPDATES = EXAMPLES / "keyed-update"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    with executor("local", 2) as found:
        yield found


def on_cluster(engine: Executor, path: Path, seeds: int = 2) -> Predictor:
    predictor = Predictor.open(path, seeds=seeds)
    simulations._distribute_to(engine)(predictor.replayer, path)
    return predictor


def task_of(path: Path) -> PredictTask:
    return PredictTask(str(path), fingerprint(str(path)))


def dies_once(task: PredictTask) -> str:
    """Ends the worker of the first task that finds no mark."""
    try:
        Path(task.uri).with_suffix(".died").touch(exist_ok=False)
    except FileExistsError:
        return simulated(task)
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def test_a_cluster_answers_as_this_process_does(cluster: Executor, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'like = "{NVME}"\n')
    here, there = Predictor.open(UPDATES, seeds=2), on_cluster(cluster, UPDATES)
    told: list[tuple[int, int]] = []
    there.replayer.progress = lambda done, of: told.append((done, of))
    devices = [str(own), GP3]
    expected = rank(here, devices)
    own.unlink()  # this process has read it; the workers get its text
    assert rank(there, devices) == expected and expected.tried == 16
    assert [done for done, of in told if of == 16] == [*range(1, 17), 16]
    refused = Scenario(cores=1, placement={"log": "nvme-dc"})
    assert there.predict([refused, Scenario()]) == here.predict([refused, Scenario()])


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "--devices", "nvme-dc,gp3"],
        ["predict", "--place", "log=nvme-dc", "--place", "all=gp3"],
        ["advise", "--devices", "nvme-dc,gp3", "--goal", "p99=5ms"],
    ],
)
def test_commands_print_the_same(arguments: list[str]) -> None:
    command, *options = arguments
    plain = [command, str(UPDATES), *options, "--format", "json", "--seeds", "2"]
    here, there = (CliRunner().invoke(app, [*plain, *more]) for more in ([], ["--workers", "1"]))
    assert here.exit_code == there.exit_code == 0 and here.stdout == there.stdout


def test_judging_on_a_cluster(cluster: Executor) -> None:
    asked = {"all-nvme": Scenario(placement={"all": NVME}), "log-nvme": Scenario(placement={"log": NVME})}
    there = OpenedRecording(UPDATES, row(), ["hot_locks"], simulations._distribute_to(cluster))
    here = OpenedRecording(UPDATES, row(), ["hot_locks"])
    assert there.ask(asked, ModelError()) == here.ask(asked, ModelError())


def test_a_worker_that_dies_costs_no_answer(
    cluster: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop"
    shutil.copytree(UPDATES, path)
    predictor = on_cluster(cluster, path)
    monkeypatch.setattr(simulations, "simulated", dies_once)
    expected = Predictor.open(path, seeds=2).predict([Scenario(placement={"log": NVME})])
    assert predictor.predict([Scenario(placement={"log": NVME})]) == expected
    assert path.with_suffix(".died").exists()


def test_a_question_that_no_worker_survives(tmp_path: Path) -> None:
    class Fatal:
        def run(self, _: object, tasks: list[object]) -> Iterator[tuple[int, Lost]]:
            yield 0, Lost("each worker that began it died", "use a larger machine")

    with pytest.raises(TierwiseError, match="keyed-update: each worker that began it died"):
        on_cluster(Fatal(), UPDATES).predict([Scenario(placement={"log": NVME})])


def test_a_worker_refuses_another_recording(cluster: Executor, tmp_path: Path) -> None:
    path = tmp_path / "shop"
    shutil.copytree(UPDATES, path)
    predictor = on_cluster(cluster, path)
    shutil.rmtree(path)
    with pytest.raises(TierwiseError, match=r"a worker of the cluster: .*shop"):
        predictor.predict([Scenario(placement={"log": NVME})])
    shutil.copytree(EXAMPLES / "order-entry", path)
    with pytest.raises(TierwiseError, match="is not the recording that it was"):
        predictor.predict([Scenario(placement={"log": NVME})])


def test_what_cannot_be_distributed_says_so() -> None:
    pair = [str(UPDATES), str(EXAMPLES / "order-entry")]
    place = "keyed-update.log=nvme-dc#1,order-entry.log=nvme-dc#1"
    done = CliRunner().invoke(app, ["predict", *pair, "--place", place, "--workers", "2"])
    assert isinstance(done.exception, TierwiseError) and "--workers" in done.exception.message


def test_a_profile_is_compiled_once_in_a_process() -> None:
    profile = resolve(NVME).profile.core
    assert compiled(texts_of(profile)) is compiled(texts_of(profile))
    assert texts_of(compiled(texts_of(profile))) == texts_of(profile)


def test_recordings_stay_open_while_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    resident = iter([1, 1, 3, 1, 1])
    monkeypatch.setattr(open_recordings, "_resident_bytes", lambda: next(resident))
    kept = OpenRecordings(most_resident_bytes=2)
    first, second, third = (
        task_of(EXAMPLES / name) for name in ("keyed-update", "order-entry", "small-objects")
    )
    opened = kept.get(first.uri, first.checksum)
    kept.get(second.uri, second.checksum)
    assert kept.get(first.uri, first.checksum) is opened and len(kept) == 2
    kept.get(third.uri, third.checksum)  # closes the second, which was used longest ago
    assert kept.get(first.uri, first.checksum) is opened and len(kept) == 2


def test_the_last_recording_stays_open_whatever_its_size() -> None:
    kept = OpenRecordings(most_resident_bytes=1)
    one = task_of(UPDATES)
    assert kept.get(one.uri, one.checksum) is kept.get(one.uri, one.checksum) and len(kept) == 1
