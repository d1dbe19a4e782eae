"""A database that is the faster, the more of its tables its buffer holds."""

from __future__ import annotations

from typing import Any

from support.fake_replay import FakeReplay, predictor
from tierwise.advise import Advice, AdviceOptions, PaymentTerms, advise
from tierwise.predict import Predictor

GIB = 1 << 30
TELLS = {
    "can_change_memory": True,
    "page_cache": {"engine_bytes": GIB},
    "demands": {"reads": {"data": 2.0}},
    "footprints": {"log": GIB, "data": 8 * GIB, "index": GIB, "temp": GIB},
}


class _FasterWithMemory(FakeReplay):
    """Where the engine's buffer holds all, nothing waits."""

    def _outcome(self, scenario: dict[str, Any], profiles: Any, factor: float = 1.0) -> dict[str, Any]:
        share = (scenario.get("buffer_bytes") or GIB) / (9 * GIB)
        return super()._outcome(scenario, profiles, factor * (1 + 9 * (share - 1 / 9)))


def with_memory(**work: Any) -> Predictor:
    """A predictor over its recording, which tells of memory."""
    return predictor(_FasterWithMemory(**{**TELLS, **work}))


def advice(devices: str = "nvme-dc", terms: PaymentTerms | None = None, **work: Any) -> Advice:
    """The advice on it."""
    return advise(with_memory(**work), AdviceOptions(devices.split(","), terms=terms or PaymentTerms()))
