"""A toy recording with tables and indexes, each with a share of the requests to data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from support.fake_replay import GB, REQUESTS, SERVICE_US, FakeReplay, _io, predictor
from tierwise import _core
from tierwise.predict import Predictor
from tierwise.predict.replayer import Replayer
from tierwise.predict.time_savings import NO_TIME
from tierwise.recording import Recording
from tierwise.recording.relations import Relation, Relations, RelationTraffic


class FakeTables(FakeReplay):
    """The fake with some files of the data apart, which get a share of its requests."""

    def __init__(self, share: float) -> None:
        ends = [{"profile": "hdd-7k2", "roles": ["log", "data", "index", "temp", "selected"]}]
        sizes = {"log": GB, "data": 40 * GB, "index": 10 * GB, "temp": GB, "selected": GB}
        super().__init__(devices=ends, footprints=sizes)
        self.requests = share * REQUESTS["data"]

    def _outcome(
        self, scenario: dict[str, Any], profiles: Sequence[_core.Profile], factor: float = 1.0
    ) -> dict[str, Any]:
        placed = dict(scenario["placement"])
        place = placed.pop("selected", None)
        outcome = super()._outcome(scenario | {"placement": placed}, profiles, factor)
        device = profiles[place["profile"]].name if place else "recorded"
        takes_us = 0.0 if device == NO_TIME else SERVICE_US.get(device, 1000.0)
        each_us = outcome["elapsed_s"] * 1e6 / outcome["transactions"]
        faster_us = self.requests * (SERVICE_US["recorded"] - takes_us) / self.sessions / factor
        transactions = round(outcome["elapsed_s"] * 1e6 / (each_us - faster_us))
        latency = dict.fromkeys(outcome["latency"], (each_us - faster_us) * self.sessions)
        io = [*outcome["io"], _io("selected", self.requests * transactions)]
        more = {"turns": 3 * transactions, "transactions": transactions, "latency": latency, "io": io}
        return outcome | more


class _Recorded:
    path = Path("shop")

    def __init__(self, rows: Sequence[RelationTraffic]) -> None:
        self._found = Relations(rows, [])

    def relations(self, names: Path | None = None) -> Relations:
        return self._found


def tables_predictor(names: Sequence[str], **facts: Any) -> Predictor:
    """A recording whose tables have these names; each was waited for less than the one before it."""
    shares = [1 / 2 ** (place + 1) for place in range(len(names))]
    rows = [
        RelationTraffic(
            Relation(
                path=f"base/5/{place}",
                name=name,
                kind="index" if place % 3 == 1 else "table",
                table=names[place - 1] if place % 3 == 1 else None,
            ),
            files=[place],
            size_bytes=(1 + 7 * place % 13) * GB // 4,
            reads=round(1e6 * share) + 60 - place,
            writes=round(1e5 * share) + 60 - place,
            waited_s=100 * share,
            device_s=100 * share,
        )
        for place, (name, share) in enumerate(zip(names, shares, strict=True))
    ]
    made = predictor(**facts)

    def replay(path: Path, *, selected: Sequence[int]) -> Replayer:
        return Replayer(FakeTables(sum(shares[file] for file in selected)))

    made.select_from(cast(Recording, _Recorded(rows)), replay)
    return made
