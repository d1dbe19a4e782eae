"""The sliders of a live page, and its questions: JSON -> client and scenario, or what is wrong with it."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import STRICT, parse_as_model
from tierwise.model.units import MIB
from tierwise.predict import RECORDED, Predictor, Scenario, scenario_machine
from tierwise.predict.replayer import SimulationRequest
from tierwise.predict.scenario import require_asked

MOST_BYTES = 16 << 10
"""Largest body of a question."""
BODY_WITHIN_S = 10.0
"""Time for the whole body of a question."""
MOST_CLIENTS = 10_000
"""Most clients that a page may ask for: so many take up to 2 s of one core, as measured on 2 EPYC cores."""
ONCE_S = 0.5
"""Longest simulation of work that is done once: all of it is simulated, so this limits its clients."""
_TRIES = 10
MOST_RATE_PER_S = 1e6
"""Most arrivals a second that a page may ask for: so many take up to 1 s of one core."""
_MEND = "correct that field"
_CLI = "ask `tierwise predict` on the command line"


class RequestError(TierwiseError):
    """A request that cannot be served."""

    def __init__(self, status: int, message: str, fix: str) -> None:
        super().__init__(message, fix)
        self.status = status


class PageQuestion(BaseModel):
    """The body of a question."""

    model_config = STRICT

    client: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
    """Random name of the page that asks; its new question replaces the former one."""
    scenario: dict[str, Any]
    """Fields of :class:`tierwise.predict.Scenario`."""


def read_question(body: bytes) -> PageQuestion:
    """The question in a body.

    Raises:
        RequestError: no JSON, or not a question.
    """
    try:
        content = json.loads(body)
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError):
        raise RequestError(400, "the body is not JSON", "send `client` and `scenario`") from None
    return parse_as_model(PageQuestion, content, "", _MEND)


def scenario_of_question(
    question: PageQuestion, devices: Collection[str], predictor: Predictor, most: int
) -> Scenario:
    """The scenario of a question, with its machine and its growth applied.

    Args:
        devices: full names of the page's devices. No other is looked up: a name could be a path.

    Raises:
        TierwiseError: an unknown field, a value out of range, a device that is not on the page, or a
            simulation too long for a page.
    """
    placement = question.scenario.get("placement", {})
    for device in placement.values() if isinstance(placement, dict) else ():
        if device != RECORDED and device not in devices:
            raise TierwiseError(
                f"placement: {str(device)[:80]!r} is not on this page", f"name one of {', '.join(devices)}"
            )
    require_asked(question.scenario)
    # as JSON, so that types are exact: `true` is no number of clients, and a text is none either
    scenario = parse_as_model(Scenario, json.dumps(question.scenario), "", _MEND, strict=True)
    if scenario.selected:
        raise TierwiseError("placement: a live page places roles, not tables", _CLI)
    scenario = scenario_machine.scenario_on_instance(scenario, predictor.work)
    scenario = scenario_machine.scenario_with_growth(scenario, predictor.run, predictor.work)
    _require_short(scenario, most)
    return scenario


def most_page_clients(predictor: Predictor) -> int:
    """Most clients that a page may ask for; of work that is done once by what a simulation takes here."""
    work = predictor.work
    if not work.once:
        return MOST_CLIENTS
    longest = int(work.sessions * ONCE_S / _shortest_s(predictor))
    return max(work.sessions, min(longest, MOST_CLIENTS))


def _shortest_s(predictor: Predictor) -> float:
    """The shortest of some simulations of the recorded run: whatever else runs makes one longer."""
    taken_s: list[float] = []
    while len(taken_s) < _TRIES and sum(taken_s) < ONCE_S:
        started_s = time.perf_counter()
        predictor.replayer.ask([SimulationRequest(Scenario(), 0)])
        taken_s.append(time.perf_counter() - started_s)
    return max(min(taken_s), 1e-6)


def _require_short(scenario: Scenario, most: int) -> None:
    """Refuse a scenario whose simulation takes seconds: it could not be cancelled meanwhile."""
    if (scenario.clients or 0) > most:
        raise TierwiseError(f"clients: {scenario.clients:,} is more than the {most:,} of a live page", _CLI)
    if (scenario.rate_per_s or 0.0) > MOST_RATE_PER_S:
        raise TierwiseError(
            f"rate_per_s: {scenario.rate_per_s:,.0f} is more than the {MOST_RATE_PER_S:,.0f} of a live page",
            _CLI,
        )


Slider = dict[str, Any]
_FACTORS = [2.0 ** (step / 2) for step in range(-8, 13)]
"""From a sixteenth to 64 times the recorded value, each 1.41 times the one before."""
_MOST_CORES = 128


def page_sliders(predictor: Predictor, most_clients: int) -> list[Slider]:
    """One for each field that the recording can answer.

    Each has the ``name`` of the scenario's field, a ``label``, its ``stops`` in ascending order (``null``
    among them: leave the field out) and the index of the stop that is ``as_recorded``. Numbers are in the
    field's unit.
    """
    run, work = predictor.run, predictor.work
    counts = [_slider("cores", "Cores", run.cores, _whole(run.cores, max(_MOST_CORES, run.cores)))]
    if not run.once:
        counts.insert(0, _slider("clients", "Clients", run.clients, _whole(run.clients, most_clients)))
    if work.can_change_memory:
        least_bytes = work.page_cache.engine_bytes + MIB
        stops = [round(run.memory_bytes * factor) for factor in _FACTORS]
        stops = [stop for stop in stops if stop > least_bytes]
        counts.append(_slider("memory_bytes", "Memory", run.memory_bytes, stops))
    if run.once or run.unit != "transactions":
        return counts
    growth = [factor for factor in _FACTORS if run.rate_per_s * factor <= MOST_RATE_PER_S]
    rates = [float(f"{run.rate_per_s * factor:.3g}") for factor in growth]
    return [
        *counts,
        _slider("growth", "Growth of data and load", 1.0, [float(f"{factor:.3g}") for factor in growth]),
        {
            "name": "rate_per_s",
            "label": "Arrival rate",
            "stops": [None, *rates],
            "as_recorded": 0,
        },
    ]


def _whole(recorded: int, most: int) -> list[int]:
    """Whole numbers around the recorded one, evenly spaced on the logarithm, up to ``most``."""
    stops = {max(1, round(recorded * factor)) for factor in _FACTORS}
    return sorted(stop for stop in stops if stop <= most)


def _slider(name: str, label: str, recorded: float, stops: Sequence[float]) -> Slider:
    near = sorted({stop for stop in stops if stop != recorded} | {recorded})
    shown = [None if stop == recorded else stop for stop in near]
    return {
        "name": name,
        "label": label,
        "stops": shown,
        "as_recorded": near.index(recorded),
        "recorded": recorded,
    }
