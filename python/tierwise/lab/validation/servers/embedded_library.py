"""A database embedded in its client's process: its directories, and the start of that process."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tierwise.capture.target import RecordingTarget, load_rules
from tierwise.host import cpu, processes
from tierwise.host.python_process import ProcessCommand
from tierwise.host.users import server_user
from tierwise.lab.validation.servers.case_database import CaseDatabase, copy_files
from tierwise.model.placement import Role


class EmbeddedLibrary(CaseDatabase):
    """Files of a role are in the directory of that role."""

    def __init__(self, engine: str, settings: Mapping[str, str]) -> None:
        super().__init__(engine, "validate", server_user())
        self.engine, self.settings = engine, settings
        self.on_started: Callable[[RecordingTarget], None] = lambda _: None
        """Called when a client's process exists and has not begun its work."""

    def make(self, prepare: Callable[[], None], folder: Path) -> None:
        """Let the client fill directories of the home, then keep them."""
        self.places = {role: self.own_directory(self.home, role) for role in Role}
        prepare()
        for role, place in self.places.items():
            if any(place.iterdir()):
                copy_files(place, folder / str(role))
            shutil.rmtree(place)

    def place(self, template: Path, places: Mapping[Role, Path]) -> None:
        """Copy each role's files to its place."""
        self.places = {role: self.own_directory(place, "files") for role, place in places.items()}
        for role in Role:
            held = template / str(role)
            for path in held.iterdir() if held.exists() else ():
                copy_files(path, self.places.get(role, self.places[Role.DATA]))

    def failure(self) -> str | None:
        """``None``: a client reports its own failures."""
        return None

    def _disconnect(self) -> None:
        """Nothing is connected."""

    def directory(self, role: Role) -> Path:
        """Directory of a role's files."""
        return self.places.get(role, self.places[Role.DATA])

    def launch(
        self, program: Sequence[str | Path] | ProcessCommand, log: Path, script: str = processes.STOP_FIRST
    ) -> processes.Process:
        """Start a client; it does nothing before :attr:`on_started` returns."""
        command = (
            program
            if isinstance(program, ProcessCommand)
            else ProcessCommand([*map(str, program)], self.user)
        )
        stopped = ProcessCommand(["/bin/sh", "-c", script, "sh", *command.argv], command.user)
        process = self.start_program(self.engine, stopped, log)
        try:
            process.await_stop("the client")
            rules = load_rules(self.engine)
            self.on_started(RecordingTarget(lambda: sorted(cpu.process_tree(process.pid)), rules))
            os.kill(process.pid, signal.SIGCONT)
        except BaseException:
            process.kill()
            raise
        return process
