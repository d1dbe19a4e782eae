"""The sliders of a live page: field of the scenario, stops, and the recorded value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tierwise.predict import Predictor
from tierwise.serve.questions import MOST_RATE_PER_S

Slider = dict[str, Any]
_MIB = 1 << 20
_FACTORS = [2.0 ** (step / 2) for step in range(-8, 13)]
"""From a sixteenth to 64 times the recorded value, each 1.41 times the one before."""
_MOST_CORES = 128


def sliders(predictor: Predictor, most_clients: int) -> list[Slider]:
    """One for each field that the recording can answer.

    Each has the ``name`` of the scenario's field, a ``label``, its ``stops`` in ascending order (``null``
    among them: leave the field out) and the index of the stop that is ``as_recorded``. Numbers are in the
    field's unit.
    """
    run, work = predictor.run, predictor.work
    counts = [
        _slider("clients", "Clients", run.clients, _whole(run.clients, most_clients)),
        _slider("cores", "Cores", run.cores, _whole(run.cores, max(_MOST_CORES, run.cores))),
    ]
    if work.can_change_memory:
        least_bytes = work.page_cache.engine_bytes + _MIB
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
