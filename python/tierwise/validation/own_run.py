"""One run of a tierwise workload by the runner, as a row of a validation."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

from tierwise.model.progress import ProgressCallback
from tierwise.results import RunResult
from tierwise.studies import runner
from tierwise.studies.runner.run import execute
from tierwise.validation import control
from tierwise.validation.order import Session
from tierwise.validation.rows import Row, storage_fields
from tierwise.validation.session import Place
from tierwise.validation.spec import ValidationSpec

_PERCENTILES = ("p50_us", "p95_us", "p99_us")


def run_session(
    session: Session,
    spec: ValidationSpec,
    place: Place,
    base: Row,
    progress: ProgressCallback,
    *,
    drop_caches: bool = False,
) -> Iterator[Row]:
    """Run a session, each run on its own devices; the control workload uses the machine's own storage.

    Raises:
        TierwiseError: if a run cannot be prepared.
    """
    for kind in session.kinds:
        began_s = time.monotonic()
        recordings = None
        study = session.case.placed_in(place.own)
        if kind == "recorded":
            study = study.model_copy(update={"seconds": session.case.recorded_seconds})
            recordings = runner.Recordings(place.recording(""), duty=session.case.spec.duty)
            shutil.rmtree(place.recording(session.plan(kind).run_id), ignore_errors=True)
        before = control.read(spec.control, place.own)
        plan = session.plan(kind)
        result = execute(study, plan, session.seed, progress, recordings, drop_caches=drop_caches)
        after = control.read(spec.control, place.own)
        shared = {"kind": kind, "control": [before, after], "took_s": time.monotonic() - began_s}
        yield Row.model_validate({**base.model_dump(), **shared, **_fields(result)})


def _fields(result: RunResult) -> dict[str, object]:
    every = result.latency.get("all")
    done = result.transactions
    busy = result.cpu
    return {
        "engine": result.engine.name,
        "server": f"{result.engine.name} {result.engine.version}",
        "started_at": result.started_at,
        "status": {"ok": "ok", "invalid": "spoilt", "failed": "failed"}[result.status],
        "problems": result.problems,
        "laps": bool(result.laps),
        "cold_start": result.cold_start,
        "elapsed_s": result.elapsed_s,
        "transactions": done,
        "rate_per_s": result.rate_per_s,
        "latency_us": {name: getattr(every, name) for name in _PERCENTILES} if every else {},
        "cpu_s": busy.engine_s + busy.clients_s + (busy.other_s or 0.0) if busy else None,
        **storage_fields(result.io, result.devices, done, 0.0),
    }
