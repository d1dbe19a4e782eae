"""The measured load: a mix of transactions, or laps in stages, the streams of a stage side by side."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tierwise.host import page_cache
from tierwise.lab.engines.base import ConnectedClients, Engine
from tierwise.lab.studies.runner.counter_window import CounterWindow, OpenCounterWindow
from tierwise.lab.studies.runner.placement_proof import resident_share
from tierwise.lab.studies.runner.run_recording import RecordingDestination, RunRecording
from tierwise.lab.studies.runner.run_storage import RunStorage
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.lab.workloads.program import Lap, Program, Stage
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.results import ColdStart, LapResult, Latency


@dataclass(frozen=True)
class RunContext:
    """Objects that one run uses."""

    study: Study
    """The study at the run's point of the sweep."""
    plan: RunPlan
    engine: Engine
    storage: RunStorage
    program: Program
    progress: ProgressCallback
    recordings: RecordingDestination | None = None
    drop_caches: bool = False


def measure_transactions(
    bench: RunContext, recording: RunRecording | None = None
) -> tuple[dict[str, Any], CounterWindow]:
    """Connect, warm up, then run the study's transactions with all counters active.

    Returns:
        The clients' report (times, counts and latencies), and the window measured meanwhile.

    Raises:
        TierwiseError: if a statement fails.
    """
    study = bench.study
    clients = bench.engine.clients(bench.program.json, study.clients, bench.plan.seed)
    try:
        if study.warmup_transactions:
            clients.run(study.warmup_transactions, None)
        window = OpenCounterWindow(bench.engine, bench.storage, recording, waits=study.waits)
        try:
            load = json.loads(clients.run(study.transactions, study.seconds))
            return load, window.close(load["elapsed_s"], load["client_cpu_s"])
        finally:
            window.abandon()
    finally:
        clients.close()


@dataclass
class MeasuredLaps:
    """Results of the laps. ``windows`` cover timed work: one per lap, or per stage of several streams."""

    laps: list[LapResult] = field(default_factory=list)
    windows: list[CounterWindow] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """Laps that failed or gave a wrong result, each named."""
        return [f"lap {lap.name}: {lap.problem}" for lap in self.laps if lap.status in ("failed", "wrong")]

    @property
    def capped(self) -> bool:
        """Whether a timed lap was stopped at the cap, so that its full time is unknown."""
        return any(lap.status == "capped" and lap.timed for lap in self.laps)


def max_clients_of_laps(program: Program) -> int:
    """Maximum number of concurrent clients."""
    return max(
        sum(max((lap.clients for lap in stream), default=0) for stream in stage.streams)
        for stage in program.stages
    )


def tables_filled_by_laps(program: Program) -> set[str]:
    """Tables that laps fill instead of the load phase."""
    return {lap.load for lap in program.laps if lap.load is not None}


def program_with_tables(program_json: str, wanted: Callable[[str], bool]) -> str:
    """The program with only some of its tables."""
    program = json.loads(program_json)
    program["tables"] = [table for table in program["tables"] if wanted(table["name"])]
    return json.dumps(program)


class LapRunner:
    """Runs the laps of one program on a loaded database."""

    def __init__(self, bench: RunContext, recording: RunRecording | None = None) -> None:
        self._bench, self._recording = bench, recording
        self._clients: dict[tuple[int, int], ConnectedClients] = {}
        self._broken_off = threading.Event()
        self._began_s = time.monotonic()

    def run(self) -> MeasuredLaps:
        """Run every lap. A failure or a wrong result ends the run after the current laps."""
        measured = MeasuredLaps()
        try:
            for stage in self._bench.program.stages:
                if len(stage.streams) == 1:
                    self._run_one_stream(stage, measured)
                else:
                    self._run_streams(stage, measured)
                if self._broken_off.is_set():
                    break
        finally:
            for clients in self._clients.values():
                clients.close()
        return measured

    def _window(self, recording: RunRecording | None) -> OpenCounterWindow:
        return OpenCounterWindow(
            self._bench.engine, self._bench.storage, recording, waits=self._bench.study.waits
        )

    def _run_one_stream(self, stage: Stage, measured: MeasuredLaps) -> None:
        for lap in stage.streams[0]:
            before: dict[str, Any] = {"cold_start": self._prepare(lap)}
            before["resident_share"] = resident_share(self._bench.engine, self._bench.storage)
            self._bench.progress(lap.name)
            window = self._window(self._recording if lap.timed else None)
            try:
                result, client_cpu_s = self._run_lap(lap, 0)
                measured.laps.append(result.changed(**before))
                if self._broken_off.is_set():
                    return
                counted = window.close(result.elapsed_s, client_cpu_s)
            finally:
                window.abandon()
            measured.laps[-1] = measured.laps[-1].changed(
                counters=counted.engine, io=counted.storage.io, waits=counted.waits
            )
            if lap.timed:
                measured.windows.append(counted)

    def _run_streams(self, stage: Stage, measured: MeasuredLaps) -> None:
        """Streams share the counters, so only the whole stage has counters."""
        for number, stream in enumerate(stage.streams):
            for count in {lap.clients for lap in stream if lap.transaction is not None}:
                self._connected(number, count)
        window = self._window(self._recording)
        began_s = time.monotonic()
        done: list[tuple[LapResult, float]] = []
        threads = [
            threading.Thread(
                target=self._run_stream, args=(number, laps, done), name=f"stream-{number}", daemon=True
            )
            for number, laps in enumerate(stage.streams)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            elapsed_s = time.monotonic() - began_s
            measured.laps += sorted(
                (result for result, _ in done), key=lambda result: result.started_s or 0.0
            )
            if not self._broken_off.is_set():
                measured.windows.append(window.close(elapsed_s, sum(cpu_s for _, cpu_s in done)))
        finally:
            window.abandon()

    def _run_stream(self, number: int, laps: Sequence[Lap], done: list[tuple[LapResult, float]]) -> None:
        """Run one stream, and add its results to those of all, until the run breaks off."""
        for lap in laps:
            if self._broken_off.is_set():
                return
            done.append(self._run_lap(lap, number))

    def _prepare(self, lap: Lap) -> ColdStart | None:
        """Do what comes before a lap; give how it was made cold, if it is."""
        cold = None
        if "checkpoint" in lap.before:
            self._bench.engine.checkpoint()
        if "cold" in lap.before:
            cold = self._bench.engine.restart_cold(drop_caches=self._bench.drop_caches)
            page_cache.drop_cached_pages(
                self._bench.engine.owned_directories, drop_caches=self._bench.drop_caches
            )
            for clients in self._clients.values():
                clients.reconnect()
        if lap.transaction is not None:
            made_before = (0, lap.clients) in self._clients
            clients = self._connected(0, lap.clients)
            if made_before and "reconnect" in lap.before and cold is None:
                clients.reconnect()
        return cold

    def _connected(self, stream: int, count: int) -> ConnectedClients:
        key = (stream, count)
        if key not in self._clients:
            self._clients[key] = self._bench.engine.clients(
                self._bench.program.json, count, self._bench.plan.seed + stream
            )
        return self._clients[key]

    def _run_lap(self, lap: Lap, stream: int) -> tuple[LapResult, float]:
        """The result without counters, and the clients' CPU seconds."""
        started_s = time.monotonic()
        facts: dict[str, Any] = {
            "name": lap.name,
            "stream": stream,
            "timed": lap.timed,
            "cold": "cold" in lap.before,
            "started_s": started_s - self._began_s,
            "expected_checksum": lap.checksum,
        }
        try:
            done = self._do(lap, stream)
        except TierwiseError as error:
            self._broken_off.set()
            elapsed_s = time.monotonic() - started_s
            failed = {"status": "failed", "problem": str(error), "elapsed_s": elapsed_s}
            return LapResult.model_validate({**facts, **failed}), 0.0
        client_cpu_s = done.pop("client_cpu_s", 0.0)
        result = LapResult.model_validate({**facts, "elapsed_s": time.monotonic() - started_s, **done})
        if result.status == "wrong":
            self._broken_off.set()
        return result, client_cpu_s

    def _do(self, lap: Lap, stream: int) -> dict[str, Any]:
        """Do the work of the lap and return the result fields that it determines."""
        if lap.load is not None:
            alone = program_with_tables(self._bench.program.json, lambda name: name == lap.load)
            return {"status": "ok", "rows": self._bench.engine.load_tables(alone, self._bench.plan.seed)}
        if lap.statement is not None:
            self._bench.engine.execute_schema([lap.statement])
            return {"status": "ok"}
        clients = self._connected(stream, lap.clients)
        cap_s = self._bench.study.cap_s if lap.capped else None
        report = json.loads(clients.run(lap.count, None, transaction=lap.transaction, cap_s=cap_s))
        return _outcome(lap, report)


def _outcome(lap: Lap, report: dict[str, Any]) -> dict[str, Any]:
    """Result fields from the clients' report on a lap; only a complete lap has a checksum."""
    outcome = {name: report.get(name) for name in ("elapsed_s", "transactions", "rows", "checksum")}
    outcome |= {"status": "ok", "client_cpu_s": report["client_cpu_s"]}
    if lap.transaction in report["latency"]:
        outcome["latency"] = Latency.model_validate(report["latency"][lap.transaction])
    if report.get("capped"):
        return {**outcome, "status": "capped", "problem": f"stopped after {report['elapsed_s']:.1f} s"}
    if report["errors"]:
        return {**outcome, "status": "failed", "problem": f"{report['errors']} transactions were given up"}
    if lap.checksum is not None and report.get("checksum") != lap.checksum:
        problem = f"checksum {report.get('checksum')} in place of {lap.checksum}"
        return {**outcome, "status": "wrong", "problem": problem}
    return outcome
