"""A placement of a case that is up: a database of its own, on storage of its own."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tierwise.capture.record import RecordingSession
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import RecordingTarget
from tierwise.host import page_cache
from tierwise.host.cgroups import MemoryLimit
from tierwise.lab.studies.runner.run_recording import BURST_S, RunRecording
from tierwise.lab.studies.runner.run_storage import RunStorage, open_storage
from tierwise.lab.validation import servers
from tierwise.lab.validation.clients import ValidationClient
from tierwise.lab.validation.servers import CaseDatabase
from tierwise.lab.validation.servers.embedded_library import EmbeddedLibrary
from tierwise.lab.validation.validation_case import ValidationCase
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.model.output_files import make_own_folder
from tierwise.results import ColdStart

_OF_FILE_SYSTEM = "lost+found"


@dataclass
class PlacedDatabase:
    """A database on the storage of one placement, and the client that runs against it."""

    case: ValidationCase
    placement: str
    client: ValidationClient[Any]
    database: CaseDatabase
    storage: RunStorage
    template: Path
    limit: MemoryLimit | None
    drop_caches: bool
    cold: ColdStart | None = None
    """How caches were emptied last; ``None`` if they were to stay warm."""

    def fill(self) -> None:
        """Put the data in place at memory speed and start the server.

        Under a memory limit the page cache begins empty: what the copy left there is not the server's.
        """
        with self._at_memory_speed():
            self.database.stop()
            for place in set(self.storage.places.values()):
                for path in place.iterdir():
                    if path.name != _OF_FILE_SYSTEM:
                        shutil.rmtree(path)
            self.database.place(self.template, self.storage.places)
            page_cache.write_out_dirty_pages(self.storage.places.values())
            if self.case.spec.caches == "cold" or self.limit is not None:
                self.cold = page_cache.make_caches_cold(
                    self.storage.places.items(), drop_caches=self.drop_caches
                )
            self.database.start()
            if self.limit is not None and self.database.pid is not None:
                self.limit.confine(self.database.pid)

    def warm_up(self) -> None:
        """Run the client unmeasured, so that caches hold on every storage what they hold after long use."""
        with self._at_memory_speed():
            self.client.warm_up(self.database, self.case.warm_up_s)
            self._write_out()

    def prepare(self) -> None:
        """Reach the state in which a slot begins: a job's data restored, and caches as asked."""
        if self.case.laps:
            self.fill()
            self.warm_up()
        if self.case.spec.caches == "cold":
            with self._at_memory_speed():
                self.cold = page_cache.drop_cached_pages(
                    self.storage.places.items(), drop_caches=self.drop_caches
                )

    def settle(self) -> None:
        """Write dirty pages of emulated disks out at memory speed: later slots do not pay for them."""
        with self._at_memory_speed():
            self._write_out()

    def _write_out(self) -> None:
        if self.storage.emulated:
            page_cache.write_out_dirty_pages(self.storage.places.values())

    def run(self, seconds: float, seed: int, out: Path | None = None) -> dict[str, Any]:
        """Run the client; give the fields of a row. A client that fails makes a failed slot.

        ``out`` is the folder of a recording of it, if it is to be recorded.
        """
        started_at = datetime.now(UTC)
        self.client.seed = seed
        try:
            with self._recording(out) as end:
                load = self.client.run(self.database, seconds)
                end(load.elapsed_s)
        except TierwiseError as error:
            problems = [str(error), *self.storage.broken()]
            return {"started_at": started_at, "status": "failed", "problems": problems}
        return {
            "started_at": started_at,
            "laps": self.case.laps,
            "elapsed_s": load.elapsed_s,
            "transactions": load.transactions,
            "latency_us": load.latency_us,
        }

    @contextmanager
    def _at_memory_speed(self) -> Iterator[None]:
        """Emulated disks complete requests at once meanwhile."""
        self.storage.set_timing(False)
        yield
        self.storage.set_timing(True)

    @contextmanager
    def _recording(self, out: Path | None) -> Iterator[Callable[[float], None]]:
        """Record a server, or a library's client as soon as it starts; yields what ends the recording.

        tierwise is not given the number of transactions. It detaches at the end in any case.
        """
        started: list[RunRecording] = []
        duty = 1.0 if self.case.laps else self.case.spec.duty
        with ExitStack() as undo:

            def attach(target: RecordingTarget) -> None:
                assert out is not None
                shutil.rmtree(out, ignore_errors=True)
                watched = replace(target, disk_servers=self.storage.server_pids)
                schedule = BurstSchedule(None, duty, BURST_S)
                session = RecordingSession(watched, out, schedule, lambda _: None, self.database.dsn())
                started.append(RunRecording(undo.enter_context(session), duty >= 1))
                undo.callback(started[-1].end)
                started[-1].begin()

            def end(elapsed_s: float) -> None:
                for process in started:
                    process.end(elapsed_s)
                    process.finish(None)

            if out is not None and isinstance(self.database, EmbeddedLibrary):
                undo.callback(setattr, self.database, "on_started", self.database.on_started)
                self.database.on_started = attach
            elif out is not None and (target := self.database.target()) is not None:
                attach(target)
            yield end


@contextmanager
def place_database(
    case: ValidationCase, placement: str, template: Path, own: Path, seed: int, *, drop_caches: bool
) -> Iterator[PlacedDatabase]:
    """Bring a placement up: its devices, a copy of the data, a server. All is taken down at the end."""
    with ExitStack() as undo:
        database = case.database(placement)
        undo.callback(database.remove)
        memory = case.memory_bytes.get(placement)
        limit = undo.enter_context(MemoryLimit.make(memory)) if memory is not None else None
        storage = open_storage(case.placed_in(own), case.plan(placement, seed), case.roles, undo)
        # The database stops before its devices, and at memory speed.
        undo.callback(database.stop)
        undo.callback(storage.set_timing, False)
        made = PlacedDatabase(case, placement, case.client(), database, storage, template, limit, drop_caches)
        if not case.laps:  # The data of a job are put in place for each slot.
            made.fill()
        yield made


def database_template_of(case: ValidationCase, folder: Path, progress: ProgressCallback) -> Path:
    """A stopped database with the client's data, in a folder of templates; created on first use."""
    client, database = case.client(), case.database()
    known = [database.engine, database.version(), dict(database.settings), servers.CLIENT]
    if database.engine == "postgres":
        known += database.selected
    facts = json.dumps(known)
    name = f"{database.engine}-{client.dataset}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"
    if (folder / name).exists():
        database.remove()
        return folder / name
    progress(f"preparing {name}")
    made = folder / f"{name}.part"
    shutil.rmtree(made, ignore_errors=True)
    make_own_folder(made)
    try:
        database.make(lambda: client.prepare(database), made)
    finally:
        database.remove()
    made.rename(folder / name)
    return folder / name


def template_size_bytes(template: Path) -> int:
    """Bytes of a template's files."""
    return sum(path.lstat().st_size for path in template.rglob("*") if not path.is_symlink())
