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
from tierwise.cluster import simulations
from tierwise.cluster.dask_executor import open_executor
from tierwise.cluster.simulations import SimulationTask, run_simulations
from tierwise.lab.validation.recording_answers import OpenedRecording
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import Executor
from tierwise.predict import ModelError, Predictor, Scenario, rank_placements

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("cryptography", "distributed", "pyarrow")),
    reason="the extra cluster is not installed",
)
UPDATES = EXAMPLES / "keyed-update"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    with open_executor("local", 2) as pool:
        yield pool


def on_cluster(engine: Executor, path: Path, seeds: int = 2) -> Predictor:
    predictor = Predictor.open(path, seeds=seeds)
    simulations._distribute_to(engine)(predictor.replayer, path)
    return predictor


def dies_once(task: SimulationTask) -> str:
    """Ends the worker of the first task that finds no mark."""
    try:
        Path(task.uri).with_suffix(".died").touch(exist_ok=False)
    except FileExistsError:
        return run_simulations(task)
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def test_a_cluster_answers_as_this_process_does(cluster: Executor, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'like = "{NVME}"\n')
    here, there = Predictor.open(UPDATES, seeds=2), on_cluster(cluster, UPDATES)
    parts: list[tuple[int, int]] = []
    there.replayer.progress = lambda done, of: parts.append((done, of))
    devices = [str(own), GP3]
    expected = rank_placements(here, devices)
    own.unlink()  # this process has read it; the workers get its text
    assert rank_placements(there, devices) == expected and expected.tried == 16
    assert [done for done, of in parts if of == 16] == [*range(1, 17), 16]
    refused = Scenario(cores=1, placement={"log": "nvme-dc"})
    assert there.predict([refused, Scenario()]) == here.predict([refused, Scenario()])


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "--devices", "nvme-dc,gp3"],
        ["predict", "--place", "log=nvme-dc", "--place", "all=gp3"],
        ["advise", "--devices", "nvme-dc,gp3", "--goal", "tps=50"],
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
    monkeypatch.setattr(simulations, "run_simulations", dies_once)
    expected = Predictor.open(path, seeds=2).predict([Scenario(placement={"log": NVME})])
    assert predictor.predict([Scenario(placement={"log": NVME})]) == expected
    assert path.with_suffix(".died").exists()


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
