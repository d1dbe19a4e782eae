"""One session of an external client: its devices, data, server and runs."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tierwise.host import machine, page_cache
from tierwise.host.memory_limit import MemoryLimit
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import own_folder
from tierwise.model.progress import ProgressCallback
from tierwise.model.roles import Role
from tierwise.results import ColdStart
from tierwise.studies.runner.storage import Storage, open_storage
from tierwise.validation import control, servers
from tierwise.validation.case import Case
from tierwise.validation.clients import Client
from tierwise.validation.log_waits import WaitSampler
from tierwise.validation.order import Session
from tierwise.validation.rows import Kind, Row, storage_fields
from tierwise.validation.servers import Database
from tierwise.validation.spec import ValidationSpec
from tierwise.validation.taker import taking


@dataclass(frozen=True)
class Place:
    """Folders of a validation."""

    folder: Path

    @property
    def own(self) -> Path:
        """Directory on the machine's own storage, for placement ``own``."""
        return self.folder / "own"

    @property
    def templates(self) -> Path:
        """Directory of stopped databases, to be copied."""
        return self.folder / "templates"

    def recording(self, run_id: str) -> Path:
        """Path of the recording of a run."""
        return self.folder / "recordings" / run_id


def run_session(
    session: Session,
    spec: ValidationSpec,
    place: Place,
    base: Row,
    progress: ProgressCallback,
    *,
    drop_caches: bool = False,
) -> Iterator[Row]:
    """Run a session; yield each run as it ends.

    Args:
        session: session of an external case.
        spec: its validation.
        place: folders of the validation.
        base: row with the fields that all runs of the session share.
        progress: called at the start of each phase.
        drop_caches: make a cold start by dropping the caches of the whole machine.

    Raises:
        TierwiseError: if the session cannot be prepared.
    """
    began_s = time.monotonic()
    case, client = session.case, session.case.client()
    with ExitStack() as undo:
        database = servers.create(case.spec.server, case.study.engines[0], _settings(session))
        undo.callback(database.remove)
        template = _template(database, client, place, progress)
        progress("making devices")
        roles = servers.roles_of(case.spec.server, case.study.engines[0])
        storage = open_storage(case.placed_in(place.own), session.plan("measured"), roles, undo)
        # The database stops before its devices, and at memory speed.
        undo.callback(database.stop)
        undo.callback(storage.set_timing, False)
        cold = _start(case, database, template, storage, drop_caches=drop_caches)
        if isinstance(database, servers.Server) and case.spec.memory is not None:
            undo.enter_context(_limited(database, case.spec.memory))
        progress("warming up")
        client.warm_up(database, spec.warm_up_s)
        readings = [control.read(spec.control, storage.places[_control_role(storage)])]
        for kind in session.kinds:
            progress(kind)
            found = _measured(session, kind, database, client, storage, place)
            readings.append(control.read(spec.control, storage.places[_control_role(storage)]))
            took_s, began_s = time.monotonic() - began_s, time.monotonic()
            shared: dict[str, Any] = {
                "kind": kind,
                "server": f"{database.engine} {database.version()}".strip(),
            }
            shared |= {"control": readings[-2:], "took_s": took_s, "cold_start": cold}
            yield Row.model_validate({**base.model_dump(), **shared, **found})


def _settings(session: Session) -> dict[str, str]:
    return session.case.study.settings.get(session.case.study.engines[0], {})


def _start(
    case: Case, database: Database, template: Path, storage: Storage, *, drop_caches: bool
) -> ColdStart | None:
    """Put the data in place at memory speed, and start the server; give how caches were emptied, if at all.

    Under a memory limit the page cache begins empty: what the copy left there is not the server's.
    """
    storage.set_timing(False)
    database.place(template, storage.places)
    page_cache.write_out(storage.places.values())
    cold = None
    if case.spec.caches == "cold" or case.spec.memory is not None:
        cold = page_cache.make_cold(storage.places.items(), drop_caches=drop_caches)
    database.start()
    storage.set_timing(True)
    return cold


@contextmanager
def _limited(server: servers.Server, size_bytes: int) -> Iterator[None]:
    """A memory limit on a running server; the server has stopped when it is removed."""
    with MemoryLimit.make(size_bytes) as limit:
        limit.confine(server.pid)
        try:
            yield
        finally:
            server.stop()


def _template(database: Database, client: Client[Any], place: Place, progress: ProgressCallback) -> Path:
    """A stopped database with the client's data, created on first use."""
    facts = json.dumps([database.engine, database.version(), dict(database.settings), servers.CLIENT])
    name = f"{database.engine}-{client.dataset}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"
    folder = place.templates / name
    if folder.exists():
        return folder
    progress(f"preparing {name}")
    made = folder.with_suffix(".part")
    shutil.rmtree(made, ignore_errors=True)
    own_folder(made)
    database.make(lambda: client.prepare(database), made)
    made.rename(folder)
    return folder


def _control_role(storage: Storage) -> Role:
    return Role.LOG if Role.LOG in storage.places else Role.DATA


def _measured(
    session: Session, kind: Kind, database: Database, client: Client[Any], storage: Storage, place: Place
) -> dict[str, Any]:
    """Fields of the row of one run; a client that fails makes a failed run."""
    case, started_at = session.case, datetime.now(UTC)
    out = place.recording(session.plan(kind).run_id) if kind == "recorded" else None
    sampler = None if kind == "recorded" else WaitSampler(database)
    before, busy_s = database.counters(), machine.busy_cpu_s()
    storage.start_counting()
    try:
        with taking(database, out, 1.0 if case.laps else case.spec.duty, lambda: _servers(storage)) as taker:
            taker.begin()
            load = client.run(database, case.recorded_seconds if kind == "recorded" else case.seconds)
            counted = storage.stop_counting(load.elapsed_s)
            busy_s = machine.busy_cpu_s() - busy_s
            taker.end(load.elapsed_s)
    except TierwiseError as error:
        return {"started_at": started_at, "status": "failed", "problems": [str(error), *storage.broken()]}
    finally:
        log_wait_share = sampler.stop() if sampler else None
    log_syncs = database.counters().get("log_syncs", 0.0) - before.get("log_syncs", 0.0)
    done = load.transactions
    return {
        "started_at": started_at,
        "laps": case.laps,
        "elapsed_s": load.elapsed_s,
        "transactions": done,
        "rate_per_s": None if done is None else done / load.elapsed_s,
        "latency_us": load.latency_us,
        "cpu_s": busy_s - (counted.cpu_s or 0.0),
        "log_wait_share": log_wait_share,
        **storage_fields(counted.io, counted.devices, done, log_syncs),
    }


def _servers(storage: Storage) -> list[int]:
    return [disk.stats().server_pid for disk in storage.emulated.values()]
