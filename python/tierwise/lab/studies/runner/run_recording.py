"""Recording of a study's run during its measured phase."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tierwise.capture.record import RecordingSession
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import RecordingTarget, load_rules
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.thread_waits import client_and_other_threads
from tierwise.lab.studies.runner.run_storage import RunStorage
from tierwise.model.executor import ProgressCallback
from tierwise.model.names import path_below
from tierwise.recording import discard_recording, remove_recording

BURST_S = 0.5


@dataclass(frozen=True)
class RecordingDestination:
    """Destination of recordings: one directory per run, named by the run's id."""

    directory: Path
    duty: float = 0.1
    """Duty of mixes; the timed laps of a run are recorded whole, a burst each."""

    def place_of(self, run_id: str) -> Path:
        """The folder of a run's recording."""
        return path_below(self.directory, *run_id.split("/"))


class RunRecording:
    """The recording of one run. It records in windows, from :meth:`begin` to :meth:`end`."""

    def __init__(self, session: RecordingSession, whole: bool) -> None:
        """Nothing is recorded yet.

        Args:
            whole: record every event of a window instead of scheduled bursts.
        """
        self._session, self._whole = session, whole
        self._thread: threading.Thread | None = None
        self._elapsed_s = 0.0
        self._active = False

    def begin(self) -> None:
        """A window begins."""
        self._active = True
        if self._whole:
            self._session.begin_burst()
            return
        self._thread = threading.Thread(target=self._session.run, name="recording", daemon=True)
        self._thread.start()

    def end(self, elapsed_s: float = 0.0) -> None:
        """End the current window, whose work took the given time. No error without a window."""
        self._elapsed_s += elapsed_s
        if not self._active:
            return
        self._active = False
        if self._thread is None:
            self._session.end_burst()
        else:
            self._session.stop()
            self._thread.join()

    def finish(self, transactions: int | None) -> None:
        """Write the recording, with the number of transactions in all windows."""
        self._session.finish(transactions, self._elapsed_s)


@contextmanager
def record_run(
    engine: Engine,
    storage: RunStorage,
    recordings: RecordingDestination | None,
    run_id: str,
    *,
    laps: bool,
    progress: ProgressCallback,
) -> Iterator[RunRecording | None]:
    """Record a run, if requested; an unfinished recording leaves no directory."""
    if recordings is None:
        yield None
        return
    out = recordings.place_of(run_id)
    if out.exists():
        remove_recording(out)
    schedule = BurstSchedule(None, 1.0 if laps else recordings.duty, BURST_S)
    try:
        with RecordingSession(recording_target(engine, storage), out, schedule, progress) as session:
            yield RunRecording(session, laps or recordings.duty >= 1)
    except BaseException:
        discard_recording(out)
        raise


def _client_threads() -> list[int]:
    """Threads of this process that are clients of a server; a library's clients run in its worker."""
    clients, _ = client_and_other_threads([Path("/proc/self/task")])
    return [int(thread.name) for thread in clients]


def recording_target(engine: Engine, storage: RunStorage) -> RecordingTarget:
    """The target for a study's engine, which classifies its own files and tells an index from a table."""
    rules = load_rules(engines.engine_family(engine.name))
    settings = engine.settings()

    def role_of(path: str) -> str | None:
        return engine.role_of(Path(path)) or rules.role_of(path)

    return RecordingTarget(
        engine.processes,
        rules,
        role_of,
        engine=engine.name,
        version=engine.version(),
        settings={name: settings[name] for name in rules.settings if name in settings},
        clients=_client_threads,
        disk_servers=storage.server_pids,
    )
