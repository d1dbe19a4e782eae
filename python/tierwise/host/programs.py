"""Programs of databases, of their clients and of tierwise itself: nothing else in tierwise starts one.

Each runs as tierwise's own account if root calls, with an environment that has nothing of the caller's, in a
directory that only root may write. :mod:`.interpreter` makes the command line of Python code.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tierwise.host import ledger, processes
from tierwise.host.python_process import ProcessCommand
from tierwise.host.users import ServerUser, account_ids, server_user
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.output_files import make_new_folder


class PrivateDirectory:
    """A directory of the caller's, entered in the ledger, that no third user may enter.

    It contains ``own``, a directory of the program's user, and the log. The user may pass through the outer
    directory but may not write in it, so he cannot replace the log by a link.
    """

    def __init__(self, prefix: str, user: ServerUser | None) -> None:
        self._made = ledger.passage_directory(prefix, user)
        self.user = user
        make_new_folder(self.own, owner=account_ids(user))

    @property
    def own(self) -> Path:
        """Directory that the program may write to."""
        return self._made.path / "own"

    @property
    def outer(self) -> Path:
        """Directory that only the caller may write to; the program may pass through it."""
        return self._made.path

    @property
    def log(self) -> Path:
        """File with the program's output."""
        return self._made.path / "log"

    @property
    def log_bytes(self) -> int:
        """Size of the log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def read_log(self, start_bytes: int = 0) -> str:
        """The log from byte ``start_bytes`` on, at most its last 8 MiB; empty if there is none."""
        return processes.read_log_end(self.log, start_bytes)

    def remove(self) -> None:
        """Delete the directory with all its files."""
        self._made.remove()


DIRECTORY = Path("/")
"""Working directory: a program that looks for code in it finds none, and only root may add some."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NO_HOME = Path("/nonexistent")
_OWN_VARIABLE = re.compile(rf"(?!{processes.TOKEN}$)(HOME$|TIERWISE_|XDG_)")
_LONGEST_S = 60.0
_MOST_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 16
_NOT_NEEDED = shutil.ignore_patterns("include", "*.a", "__pycache__", "doc", "man")


@dataclass(frozen=True)
class FinishedProgram:
    """How a program ended, and what it wrote."""

    status: int
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        """The last line that is not empty, of the errors if there are any."""
        lines = [line.strip() for line in (self.output + "\n" + self.errors).splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.status}"


def start(
    name: str,
    program: Sequence[str | Path] | ProcessCommand,
    *,
    home: PrivateDirectory | None = None,
    variables: Mapping[str, str] | None = None,
    log: Path | IO[bytes] | None = None,
    errors: IO[bytes] | None = None,
    descriptors: Sequence[int] = (),
) -> processes.Process:
    """Start a program as tierwise's own account if root calls, else as the caller.

    Args:
        name: name for messages; need not be unique.
        program: it with its arguments, or a command line of :mod:`.interpreter`.
        home: its ``HOME``; a directory that does not exist when left out.
        variables: all of its environment besides ``PATH``, ``HOME`` and ``LC_ALL``; only its user and root
            can read them.
        log: file for its output and errors, never opened through a link; discarded when left out.
    """
    command = (
        program
        if isinstance(program, ProcessCommand)
        else ProcessCommand([*map(str, program)], server_user())
    )
    return processes.start(
        name,
        [program_path(command.argv[0]), *command.argv[1:]],
        user=command.user,
        env=clean_environment(None if home is None else home.own, variables),
        cwd=DIRECTORY,
        log=log,
        errors=errors,
        descriptors=descriptors,
    )


def run(
    name: str,
    program: Sequence[str | Path] | ProcessCommand,
    *,
    home: PrivateDirectory | None = None,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = _LONGEST_S,
    descriptors: Sequence[int] = (),
) -> FinishedProgram:
    """Run a program as :func:`start` does, and give what it wrote.

    Raises:
        TierwiseError: if it cannot be run, does not end in time, or writes more than 8 MiB.
    """
    deadline_s = time.monotonic() + timeout_s
    (output, output_end), (errors, errors_end) = _pipe(), _pipe()
    with output, errors:
        with output_end, errors_end:
            process = start(
                name,
                program,
                home=home,
                variables=variables,
                log=output_end,
                errors=errors_end,
                descriptors=descriptors,
            )
        try:
            texts = _read(name, [output, errors], deadline_s)
            status = process.wait(max(0.0, deadline_s - time.monotonic()))
        except BaseException as error:
            process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise _too_slow(name) from None
            raise
    return FinishedProgram(status, *texts)


def spawn_tierwise_process(command: ProcessCommand, log: Path) -> subprocess.Popen[bytes]:
    """Start a process of tierwise itself that no entry of the ledger ends; it may outlive the caller."""
    with log.open("wb") as output:
        return processes.spawn_untracked(
            command.argv, output, env=clean_environment(None), cwd=DIRECTORY, user=command.user
        )


def inherited_variables() -> dict[str, str]:
    """Variables of the caller for a command of tierwise: those that name directories and set its options."""
    return {name: value for name, value in os.environ.items() if _OWN_VARIABLE.match(name)}


def clean_environment(home: Path | None, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """A whole environment that has nothing of the caller's."""
    return {"PATH": SYSTEM_PATH, "LC_ALL": "C", "HOME": str(home or _NO_HOME), **(variables or {})}


def program_path(program: str | Path) -> str:
    """Whole path of a program, on the caller's path or in the system's directories."""
    place = find_program(program)
    if place is None:
        raise TierwiseError(f"{program} is not a program", "install it, or name its whole path")
    return str(place)


def find_program(program: str | Path) -> Path | None:
    """Whole path of a program, on the caller's path or in the system's directories, if there is one."""
    path = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    place = shutil.which(str(program), path=os.pathsep.join([*path, SYSTEM_PATH]))
    return None if place is None else Path(place).absolute()


def copy_program(source: Path, destination: Path) -> None:
    """Copy a program, or a directory of them, so that all may run it and only the caller may change it."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, destination, symlinks=True, ignore=_NOT_NEEDED)
    else:
        _copy_file(source, destination)
    for path in [destination, *destination.rglob("*")]:
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if runs else 0o644)


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    return os.fdopen(read, "rb", 0), os.fdopen(write, "wb", 0)


def _read(name: str, pipes: Sequence[IO[bytes]], deadline_s: float) -> list[str]:
    """Read pipes until every writer has closed them."""
    texts: dict[IO[bytes], bytearray] = {pipe: bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise _too_slow(name)
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK_BYTES)
                texts[key.fileobj] += chunk  # type: ignore[index]
                if not chunk:
                    selector.unregister(key.fileobj)
            if sum(map(len, texts.values())) > _MOST_BYTES:
                raise TierwiseError(f"{name} writes more than {_MOST_BYTES >> 20} MiB", "see what it is")
    return [text.decode("utf-8", "replace") for text in texts.values()]


def _too_slow(name: str) -> TierwiseError:
    return TierwiseError(f"{name} does not end", "see what it waits for")


def _copy_file(source: Path, destination: Path) -> None:
    with os_errors(source, "name a program"):
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as read, destination.open("xb") as written:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise TierwiseError(f"{source} is no regular file", "name a program")
        shutil.copyfileobj(read, written)
        destination.chmod(stat.S_IMODE(mode))
