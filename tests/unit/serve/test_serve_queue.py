"""The live page's simulations: when a question is answered, and whose turn it is."""

from __future__ import annotations

import json
import math
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from support.fake_replay import FakeReplay, predictor
from tierwise.device_models.instances import find_instance
from tierwise.model.errors import TierwiseError
from tierwise.predict import Scenario

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
pytest.importorskip("starlette", reason="needs the extra `serve`")

from tierwise.serve.page_questions import read_question, scenario_of_question
from tierwise.serve.refinement import LEAST_SEEDS, MOST_SEEDS, AnswerRefinement, RefinedAnswer
from tierwise.serve.simulation_queue import SimulationQueue


def refined(scenario: Scenario, **work: Any) -> list[RefinedAnswer]:
    """All answers to a question to the fake."""
    refinement = AnswerRefinement(predictor(FakeReplay(**work), seeds=MOST_SEEDS), scenario)
    parts = []
    while refinement.has_more:
        parts.append(refinement.simulate_next())
    return [answer for answer in parts if answer]


def test_it_stops_when_the_seeds_agree_and_says_when_they_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, *_, last = refined(Scenario(clients=8))
    assert (first.stage, first.prediction.seeds) == ("first", 1)
    assert (last.stage, last.prediction.seeds, last.agreed) == ("final", LEAST_SEEDS, True)
    assert last.rate_half_width and 0 < last.rate_half_width <= 0.01
    monkeypatch.setattr("tierwise.serve.refinement.RATE_HALF_WIDTH", 1e-4)
    *_, last = refined(Scenario(clients=8))
    assert (last.stage, last.prediction.seeds, last.agreed) == ("final", MOST_SEEDS, False)


def test_the_answer_to_other_memory_holds_its_bounds() -> None:
    answers = refined(Scenario(memory_bytes=4 << 30), can_change_memory=True, unsure=1.5)
    first, last = (answer.prediction.rate_per_s for answer in (answers[0], answers[-1]))
    assert first and last and last.high / last.low > 1.4 * first.high / first.low


def test_seeds_that_count_nothing_have_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.serve.refinement._width", lambda _: math.inf)
    *_, last = refined(Scenario(clients=8))
    assert last.rate_half_width is None and not last.agreed, "infinity is no JSON"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('"clients": true', "clients: Input should be a valid integer"),
        ('"cores": "2"', "cores: Input should be a valid integer"),
        ('"rate_per_s": true', "rate_per_s: Input should be a valid number"),
        ('"growth": NaN', "growth: "),
        ('"placement": {"log": true}', "placement: 'True' is not on this page"),
        ('"placement": {"wal": "recorded"}', "^placement: unknown role 'wal'"),
        ('"set_by_instance": ["cores"]', "^set_by_instance: it follows from instance"),
    ],
)
def test_a_question_of_other_types_is_refused(field: str, expected: str) -> None:
    asked = read_question(f'{{"client": "a", "scenario": {{{field}}}}}'.encode())
    with pytest.raises(TierwiseError, match=expected):
        scenario_of_question(asked, [], predictor(), 100)


def test_a_question_may_write_a_rate_as_a_whole_number() -> None:
    asked = read_question(b'{"client": "a", "scenario": {"rate_per_s": 50, "cores": null, "settings": []}}')
    assert scenario_of_question(asked, [], predictor(), 100) == Scenario(rate_per_s=50.0)


def test_a_machine_has_its_cores_on_a_page_too() -> None:
    machine = find_instance("m6i.4xlarge")
    body = {"client": "a", "scenario": {"instance": json.loads(machine.model_dump_json())}}
    asked = scenario_of_question(read_question(json.dumps(body).encode()), [], predictor(), 100)
    (answer,) = predictor().predict([Scenario(instance=machine)])
    assert asked.cores == answer.scenario.cores == 16


class Planned:
    """A refinement whose simulations end when they are told to."""

    def __init__(self, name: str, log: list[str], gate: threading.Semaphore, count: int = 3) -> None:
        self.name, self.log, self.gate, self.left, self.count = name, log, gate, count, count

    @property
    def waits_for_first(self) -> bool:
        return self.left == self.count

    @property
    def has_more(self) -> bool:
        return self.left > 0

    def simulate_next(self) -> Any:
        self.left -= 1
        self.gate.acquire()
        self.log.append(self.name)
        return SimpleNamespace(stage="refining" if self.left else "final")


def test_first_answers_go_first_then_clients_take_turns_and_a_superseded_one_is_dropped() -> None:
    log: list[str] = []
    gate, done = threading.Semaphore(0), threading.Semaphore(0)
    simulator = SimulationQueue(threads=1)
    parts: list[Any] = []

    def ask(client: str, name: str) -> None:
        def on_reply(answer: Any) -> None:
            parts.append((name, answer and answer.stage))
            done.release()

        simulator.ask(client, Planned(name, log, gate), on_reply)  # type: ignore[arg-type]

    for client in "abc":
        ask(client, client)
    for _ in range(4):  # three first answers, then one more of the first client
        gate.release()
        assert done.acquire(timeout=60)
    ask("b", "b2")
    assert done.acquire(timeout=60)
    for _ in range(9):
        gate.release()
    while {name for name, stage in parts if stage == "final"} != {"a", "b2", "c"}:
        assert done.acquire(timeout=60)
    assert simulator.waiting == 0
    simulator.close()
    assert log[:4] == ["a", "b", "c", "a"]
    assert "b2" in log[4:6]
    # what was under way when it was superseded ends unheard, and nothing else of it is started
    assert log.count("b") <= 2
    assert [answer for answer in parts if answer[0] == "b"] == [("b", "refining"), ("b", None)]
