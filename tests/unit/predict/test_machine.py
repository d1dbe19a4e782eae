"""A scenario's machine: the cores, memory and limits that follow from it, and what is said of it."""

from __future__ import annotations

from typing import Any

from support.fake_replay import GB, FakeReplay, about, predictor
from tierwise.device_models.instances import find_instance, instance_limits_only
from tierwise.model.placement import Role
from tierwise.predict import Predictor, Scenario
from tierwise.predict.model_error import ModelError
from tierwise.predict.replayer import Replayer
from tierwise.predict.scenario_machine import instance_limits, network_volumes, scenario_on_instance

LARGE, XLARGE = find_instance("m6i.large"), find_instance("m6i.xlarge")
REAL: dict[str, Any] = {"devices": [{"profile": None, "roles": ["log", "data"]}]}


def real(**known: Any) -> Predictor:
    recorded = about(**known)
    return Predictor(recorded, [], Replayer(FakeReplay(**REAL)), model_error=ModelError())


def test_cores_and_memory_follow_unless_they_are_named() -> None:
    can = predictor(FakeReplay(can_change_memory=True)).work
    scenario = scenario_on_instance(Scenario(instance=XLARGE), can)
    assert (scenario.cores, scenario.memory_bytes) == (4, 16 << 30)
    assert scenario.set_by_instance == ["cores", "memory_bytes"]
    named = scenario_on_instance(Scenario(instance=XLARGE, cores=3, memory_bytes=5 * GB), can)
    assert (named.cores, named.memory_bytes, named.set_by_instance) == (3, 5 * GB, [])
    same = scenario_on_instance(Scenario(instance=LARGE), can)
    assert (same.cores, same.memory_bytes) == (None, None), "8 GB are what 8 GiB leave"
    assert scenario_on_instance(scenario, can) == scenario
    assert scenario_on_instance(Scenario(), can) == Scenario()
    assert scenario_on_instance(Scenario(instance=instance_limits_only(XLARGE)), can).cores is None


def test_a_machine_named_as_it_was_recorded_is_no_change() -> None:
    recorded = predictor(FakeReplay(can_change_memory=True, page_cache={"engine_bytes": GB}))
    run = recorded.run
    same = Scenario(cores=run.cores, memory_bytes=run.memory_bytes, clients=run.clients, buffer_bytes=GB)
    answer = recorded.predict([same])[0]
    assert answer.scenario == Scenario() and answer.speedup == recorded.as_recorded.speedup
    assert answer.rate_per_s == recorded.as_recorded.rate_per_s
    growing = recorded.predict([same.changed(growth=2.0)])[0].scenario
    assert (growing.cores, growing.memory_bytes, growing.clients) == (None, run.memory_bytes, run.clients)
    named = Scenario(instance=XLARGE, cores=run.cores)
    assert scenario_on_instance(named, recorded.work).cores == run.cores, "not those of the instance"
    beside = scenario_on_instance(same.changed(instance=XLARGE), recorded.work)
    assert (beside.memory_bytes, beside.clients, beside.buffer_bytes) == (run.memory_bytes, None, None)


def test_memory_stays_where_the_recording_tells_nothing_of_another_size() -> None:
    answer = predictor().predict([Scenario(instance=XLARGE)])[0]
    assert answer.refused is None and answer.scenario.memory_bytes is None and answer.scenario.cores == 4
    text = " ".join(answer.warnings)
    assert "memory stays as recorded" in text and "as fast as a recorded one" in text
    assert "nobody checked the limits of m6i.xlarge" in text
    note = "machine: m6i.xlarge has 4 cores, and sustains 6,000 I/Os"
    assert any(sentence.startswith(note) for sentence in answer.notes)


def test_the_answer_names_the_memory_that_it_takes_over() -> None:
    """MiB for GiB in a file gave an answer for 8,192 GiB, without a word."""
    recorded = predictor(FakeReplay(can_change_memory=True))
    notes = recorded.predict([Scenario(instance=LARGE.changed(memory_gib=8192))])[0].notes
    assert any(note.startswith("machine: m6i.large has 8,192 GiB of memory, and sustains") for note in notes)


def test_a_recorded_device_is_behind_the_limits_if_it_is_known_as_a_volume() -> None:
    recorded = real()
    unknown = Scenario(instance=LARGE)
    applied = instance_limits(unknown, recorded.work, recorded.about)
    assert (
        applied
        and applied["recorded"] == []
        and applied["iops"] == 3600
        and applied["burst"]["time_s"] == 1800
    )
    assert "not known to be a network volume" in " ".join(recorded.predict([unknown])[0].warnings)
    scenario = Scenario(instance=LARGE, recorded_volumes=network_volumes({"all": "gp3"}, LARGE))
    applied = instance_limits(scenario, recorded.work, recorded.about)
    assert applied and applied["recorded"] == [0]
    assert "not known to be" not in " ".join(recorded.predict([scenario])[0].warnings)
    assert network_volumes({"log": "gp3", "data": "nvme-dc"}, LARGE) == [Role.LOG]
    assert instance_limits(Scenario(), recorded.work, recorded.about) is None


def test_the_model_of_a_disk_tells_that_it_is_a_volume() -> None:
    chain = [{"depth": 1, "kind": "disk", "name": "nvme1n1", "label": "Amazon Elastic Block Store"}]
    disk = {"name": "nvme1n1", "major": 259, "minor": 0, "mount": "/db", "roles": ["log", "data"]}
    disk |= {"shared": 0, "first_sector": 0, "sectors": 1 << 21, "profile": None, "write_cache": False}
    recorded = real(devices=[disk | {"chain": chain}])
    applied = instance_limits(Scenario(instance=LARGE), recorded.work, recorded.about)
    assert applied and applied["recorded"] == [0]


def test_waits_alone_cannot_answer() -> None:
    answer = predictor(FakeReplay(from_waits=True)).predict([Scenario(instance=LARGE)])[0]
    assert answer.refused and "waits only" in answer.refused.message


def test_an_emulated_local_disk_gives_no_warning() -> None:
    answer = predictor().predict([Scenario(instance=LARGE)])[0]
    assert "not known to be a network volume" not in " ".join(answer.warnings)
