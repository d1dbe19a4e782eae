"""A replayer whose answers can be worked out by hand, in place of the compiled one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tierwise import _core
from tierwise.predict.model_error import ModelError
from tierwise.predict.predictor import SEEDS, Predictor
from tierwise.predict.rate_unit import Unit
from tierwise.predict.replayer import Replayer
from tierwise.recording import RecordingMetadata

SERVICE_US = {"recorded": 4000.0, "hdd-7k2": 4000.0, "ssd-nvme-dc": 100.0, "ssd-sata-dc": 400.0}
"""What a request takes on each device; 1,000 on any other."""
REQUESTS = {"log": 1.0, "data": 0.5, "index": 0.2, "temp": 0.0}
"""Requests of each role in a transaction."""
LEFT_OUT = {"least_log": 0.8, "without_page_writes": 0.5}
"""Factor of a transaction's time where a bound leaves bytes of the log or writes of pages out."""
CPU_US = 200.0
GB = 10**9
MACHINE = {"cores": 2, "memory_bytes": 8 * GB, "processor": "x", "kernel": "6.1"}


def service_us(
    devices: dict[str, str], clients: int = 4, cpu_speed: float = 1.0, *, log_waits: bool = True
) -> float:
    """Time of a transaction, worked out by hand; a setting lets it not wait for the log."""
    times = [
        count * SERVICE_US.get(devices[role], 1000.0)
        for role, count in REQUESTS.items()
        if role != "log" or log_waits
    ]
    return (CPU_US / cpu_speed + sum(times)) / clients


class FakeReplay:
    """Transactions one after the other; a seed shifts rates a little, what is not known of reads more."""

    def __init__(
        self,
        *,
        error: float = 0.0,
        cpu_scale: float = 1.0,
        sessions: int = 4,
        once: bool = False,
        unsure: float = 1.0,
        **work: Any,
    ) -> None:
        self.error, self.cpu_scale = error, cpu_scale
        self.sessions, self.once, self.more = sessions, once, work
        self.misses = {"fewest": unsure, "likely": 1.0, "most": 1 / unsure}
        self.asked = 0

    def work(self) -> str:
        rate = 1e6 / service_us(dict.fromkeys(REQUESTS, "recorded"), self.sessions)
        work = {
            "cores": 2,
            "memory_bytes": 8 * GB,
            "sessions": self.sessions,
            "turns": 9000,
            "transactions": 3000,
            "span_s": 10.0,
            "once": self.once,
            "footprints": {"log": GB, "data": 40 * GB, "index": 10 * GB, "temp": GB},
            "devices": [{"profile": "hdd-7k2", "roles": ["log", "data", "index", "temp"]}],
            "observed": {"turns_per_s": 3 * rate, "transactions_per_s": rate},
            "can_change_memory": False,
            "memory_reason": "it was taken in bursts",
            "limits": ["reads through mmap are invisible"],
        }
        return json.dumps(work | self.more)

    def reproduce(self, options: str, threads: int) -> str:
        seeds = json.loads(options)["seeds"]
        scenario: dict[str, Any] = {"placement": {}, "cpu_speed": 1.0, "clients": None}
        outcomes = [self._outcome(scenario | {"seed": seed}, [], 1 + self.error) for seed in seeds]
        return json.dumps({"outcomes": outcomes, "error": self.error, "cpu_scale": self.cpu_scale})

    def predict(self, scenarios: str, profiles: Sequence[_core.Profile], threads: int) -> str:
        scenarios = json.loads(scenarios)
        self.asked += len(scenarios)
        return json.dumps(
            [
                {"refused": {"message": "no replica was recorded", "fix": "leave it out"}}
                if scenario.get("commits", {}).get("without_replica")
                else {"outcome": self._outcome(scenario, profiles, self.misses[scenario["misses"]])}
                for scenario in scenarios
            ]
        )

    def _outcome(
        self, scenario: dict[str, Any], profiles: Sequence[_core.Profile], factor: float = 1.0
    ) -> dict[str, Any]:
        devices = dict.fromkeys(REQUESTS, "recorded")
        for role, place in scenario["placement"].items():
            devices[role] = profiles[place["profile"]].name
        noise = 1 + 0.002 * ((scenario["seed"] * 7) % 5 - 2)
        clients, waits = scenario["clients"] or self.sessions, "unflushed" not in scenario.get("commits", {})
        each_us = service_us(devices, clients, scenario["cpu_speed"], log_waits=waits)
        each_us /= factor * noise
        for limit in scenario.get("commits", {}).keys() & LEFT_OUT:
            each_us *= LEFT_OUT[limit]
        elapsed_s = 3000 * each_us / 1e6 if self.once else 10.0
        transactions = round(elapsed_s * 1e6 / each_us)
        latency_us = each_us * self.sessions
        return {
            "elapsed_s": elapsed_s,
            "turns": 3 * transactions,
            "transactions": transactions,
            "latency": dict.fromkeys(("p50_us", "p95_us", "p99_us", "mean_us"), latency_us),
            "shares": [["cpu", 0.2], ["log_device", 0.7], ["client", 0.1]],
            "commits_per_flush": 1.5,
            "busy_share": 0.4,
            "io": [_io(role, count * transactions) for role, count in REQUESTS.items()],
            "warnings": [],
        }


def _io(role: str, requests: float) -> dict[str, Any]:
    count = round(requests)
    figures = {"reads": 0, "writes": count, "flushes": count, "read_bytes": 0}
    return {"role": role, **figures, "written_bytes": 8192 * count, "busy_s": 0.001 * count}


def about(**changes: Any) -> RecordingMetadata:
    """What the fake's recording says of itself."""
    about: dict[str, Any] = {
        "version": 1,
        "started_at": "2026-11-21T12:00:00Z",
        "tierwise": "0.1.0",
        "engine": "postgres",
        "engine_version": "18.6",
        "settings": {},
        "machine": MACHINE,
        "duration_s": 60.0,
        "bursts": [],
        "devices": [],
        "losses": {"recorded_events": 1000, "lost_events": 0},
        "cost": None,
        "transactions": None,
        "foreign_cpu_share": 0.0,
        "checks": [],
        "warnings": [],
    }
    return RecordingMetadata.model_validate(about | changes)


def predictor(
    fake: FakeReplay | None = None,
    warnings: Sequence[str] = (),
    model_error: ModelError | None = None,
    *,
    seeds: int = SEEDS,
    unit: Unit | None = None,
    **facts: Any,
) -> Predictor:
    """A predictor over the fake, whose recording says these facts of itself; it has calibrated nothing."""
    error = ModelError() if model_error is None else model_error
    replayer = Replayer(fake or FakeReplay())
    return Predictor(about(**facts), warnings, replayer, seeds=seeds, model_error=error, unit=unit)
