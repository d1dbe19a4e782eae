"""A mix of transactions, run for a number of transactions or for a time."""

from __future__ import annotations

import json
from typing import Any

from tierwise.engines.base import Engine
from tierwise.model.errors import TierwiseError
from tierwise.studies.plan import RunPlan
from tierwise.studies.runner.recorded import RunRecording
from tierwise.studies.runner.storage import Storage
from tierwise.studies.runner.window import OpenWindow, Window
from tierwise.studies.spec import Study
from tierwise.workloads.program import Program


def measure(
    engine: Engine,
    storage: Storage,
    program: Program,
    study: Study,
    plan: RunPlan,
    recording: RunRecording | None = None,
) -> tuple[dict[str, Any], Window]:
    """Connect, warm up, then run the study's transactions with all counters active.

    Returns:
        The clients' report (times, counts and latencies), and the window measured meanwhile.

    Raises:
        TierwiseError: if a statement fails, or the study says neither how many transactions nor how long.
    """
    if study.transactions is None and study.seconds is None:
        raise TierwiseError(f"study {study.name}", "give transactions or seconds: its workload has no laps")
    clients = engine.clients(program.json, study.clients, plan.seed)
    try:
        if study.warmup_transactions:
            clients.run(study.warmup_transactions, None)
        window = OpenWindow(engine, storage, recording, waits=study.waits)
        try:
            load = json.loads(clients.run(study.transactions, study.seconds))
            return load, window.close(load["elapsed_s"], load["client_cpu_s"])
        finally:
            window.abandon()
    finally:
        clients.close()
