"""The ledger: records each resource that tierwise takes from the machine before taking it.

Every resource that can outlive a crash of its owner (an emulated disk, a server process, a temporary
directory) has an entry, one JSON file, made before the resource and removed after it. An entry names its
owner, so that :func:`tierwise.host.clean.clean` undoes only the resources of dead owners.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from tierwise.host import mounts
from tierwise.host.cpu import proc_stat_fields
from tierwise.host.interrupts import deferred_interrupts
from tierwise.host.users import ServerUser
from tierwise.model import file_lock
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.output_files import make_new_folder, make_own_folder

Kind = Literal["disk", "process", "limit", "directory"]

_WRITABLE_BY_OTHERS = 0o022
_DRAFT = re.compile(r"\.(?:disk|process|limit|directory)-.+\.(?P<pid>[0-9]+)-[0-9a-f]{8}")
_FILE = re.compile(r"(?P<kind>disk|process|limit|directory)-(?P<name>[a-z0-9][A-Za-z0-9_.-]{0,99})\.json")


def run_dir() -> Path:
    """Directory of tierwise's run-time state; made on first use.

    ``TIERWISE_RUN_DIR`` when set, ``/run/tierwise`` for root, else a directory of the user.

    Raises:
        TierwiseError: if another user could add an entry, and so have anything deleted.
    """
    path = _runtime_dir_path()
    try:
        make_own_folder(path, 0o755)  # servers pass through it
    except OSError as error:
        fix = "set TIERWISE_RUN_DIR to a directory that can be made"
        raise TierwiseError(f"{path}: {error.strerror}", fix) from error
    if path.stat().st_mode & _WRITABLE_BY_OTHERS:
        raise TierwiseError(
            f"{path} can be written by others, who could have anything deleted", f"chmod go-w {path}"
        )
    return path.resolve()  # as the kernel names what is mounted and attached there


def _runtime_dir_path() -> Path:
    if named := os.environ.get("TIERWISE_RUN_DIR"):
        if not Path(named).is_absolute():
            raise TierwiseError(f"TIERWISE_RUN_DIR: {named} is relative", "give an absolute path")
        return Path(named)
    if os.geteuid() == 0:
        return Path("/run/tierwise")
    if session := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(session) / "tierwise"
    return Path(tempfile.gettempdir()) / f"tierwise-{os.geteuid()}"


@dataclass(frozen=True)
class ProcessIdentity:
    """Unique identity of a process; the kernel may reuse a pid."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Identity of a live process, or ``None``; a zombie is dead."""
        start_ticks = _start_ticks(pid)
        return None if start_ticks is None else cls(pid, start_ticks, _boot_id())

    @classmethod
    def mine(cls) -> Self:
        """Identity of the calling process."""
        identity = cls.of(os.getpid())
        assert identity is not None, "the calling process is alive"
        return identity

    @property
    def alive(self) -> bool:
        """Whether this process still runs."""
        return self.boot_id == _boot_id() and _start_ticks(self.pid) == self.start_ticks


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _start_ticks(pid: int) -> int | None:
    fields = proc_stat_fields(Path(f"/proc/{pid}"))
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True)
class LedgerEntry:
    """One resource: its kind and name (unique together), its owner, and the facts needed to undo it."""

    kind: Kind
    name: str
    owner: ProcessIdentity
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file that holds the entry."""
        return run_dir() / f"{self.kind}-{self.name}.json"

    def update(self, owner: ProcessIdentity | None = None, **facts: Any) -> LedgerEntry:
        """Replace this entry atomically by a changed one."""
        changed = replace(self, owner=owner or self.owner, facts={**self.facts, **facts})
        draft = changed._draft()
        draft.replace(changed.path)
        return changed

    def remove(self) -> None:
        """Delete the entry; the resource must be gone."""
        self.path.unlink(missing_ok=True)

    def _draft(self) -> Path:
        draft = run_dir() / f".{self.kind}-{self.name}.{os.getpid()}-{secrets.token_hex(4)}"
        try:
            with os_errors(self.path, "free space there"):  # one of a full file system names no file
                draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        except TierwiseError:
            draft.unlink(missing_ok=True)
            raise
        return draft


def add(kind: Kind, name: str, **facts: Any) -> LedgerEntry:
    """Make an entry for a resource that the calling process is about to take."""
    entry = LedgerEntry(kind, name, ProcessIdentity.mine(), facts)
    draft = entry._draft()
    try:
        os.link(draft, entry.path)
    except FileExistsError:
        raise TierwiseError(f"{kind} {name!r} exists", "choose another name, or take it down first") from None
    finally:
        draft.unlink()
    return entry


def entries(kind: Kind | None = None) -> list[LedgerEntry]:
    """All readable entries of one kind, or of every kind, by name; damaged entries are left out."""
    return _read_all(f"{kind or '*'}-*.json")[0]


def damaged_entries() -> list[TierwiseError]:
    """The error of each entry that cannot be read."""
    return _read_all("*.json")[1]


def _read_all(pattern: str) -> tuple[list[LedgerEntry], list[TierwiseError]]:
    entries: list[LedgerEntry] = []
    errors: list[TierwiseError] = []
    for path in sorted(run_dir().glob(pattern)):
        try:
            entry = _read(path)
        except TierwiseError as error:
            errors.append(error)
            continue
        if entry is not None:
            entries.append(entry)
    return entries, errors


def remove_drafts() -> None:
    """Delete the unfinished entries of processes that were killed while they wrote them."""
    for path in run_dir().glob(".*"):
        draft = _DRAFT.fullmatch(path.name)
        if draft is not None and _start_ticks(int(draft["pid"])) is None:
            path.unlink(missing_ok=True)


def find(kind: Kind, name: str) -> LedgerEntry | None:
    """The entry of this kind and name, or ``None``."""
    return _read(run_dir() / f"{kind}-{name}.json")


def _read(path: Path) -> LedgerEntry | None:
    """An entry; ``None`` if it is gone. Its kind and name must match its file's name."""
    named = _FILE.fullmatch(path.name)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        entry = LedgerEntry(
            record["kind"], record["name"], ProcessIdentity(**record["owner"]), dict(record["facts"])
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = str(error) or type(error).__name__
        raise TierwiseError(f"{path}: damaged entry of the ledger ({problem})", f"rm {path}") from None
    if named is None or (entry.kind, entry.name) != (named["kind"], named["name"]):
        raise TierwiseError(f"{path}: tierwise has not written this entry", f"rm {path}")
    return entry


@contextmanager
def hold_lock() -> Iterator[None]:
    """Hold the ledger's lock, so that only one process undoes at a time.

    Raises:
        TierwiseError: naming the process that holds it, after :data:`tierwise.model.file_lock.WAITS_S`.
    """
    with file_lock.held(run_dir() / "lock"):
        yield


@dataclass(frozen=True)
class LedgerDirectory:
    """A temporary directory in the ledger; as a context manager it removes itself."""

    path: Path
    entry: LedgerEntry

    def remove(self) -> None:
        """Delete the directory with everything in it, then its entry.

        If another one has taken its place, that one stays, and so does the entry, of which `clean` tells.
        """
        with deferred_interrupts(), suppress(TierwiseError):
            remove_directory(self.entry)

    def __enter__(self) -> Path:
        """Give the path."""
        return self.path

    def __exit__(self, *_: object) -> None:
        """Delete the directory."""
        self.remove()


def make_directory(
    prefix: str,
    parent: Path | None = None,
    mode: int = 0o700,
    owner: tuple[int, int] | None = None,
    *,
    in_foreign: bool = False,
) -> LedgerDirectory:
    """Make a temporary directory ``parent/PREFIX-RANDOM`` (parent: the system's); survives no crash."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    path = (parent or Path(tempfile.gettempdir())).absolute() / name
    entry = add("directory", name, path=str(path))
    try:
        inode = make_new_folder(path, mode, owner, in_foreign=in_foreign)
    except OSError as error:
        entry.remove()
        raise TierwiseError(f"{path}: {error.strerror}", "name a directory that can be written") from error
    except BaseException:
        entry.remove()
        raise
    try:
        # Elsewhere nobody can take its place, and a study makes it anew on the successor of a failed device.
        return LedgerDirectory(path, entry.update(inode=inode) if in_foreign else entry)
    except BaseException:
        remove_directory(entry)
        raise


def remove_directory(entry: LedgerEntry) -> None:
    """Delete the directory of an entry with everything in it, then the entry.

    Whoever owns the directory above it may put another one in its place: that one is not touched.

    Raises:
        TierwiseError: if what is there is not what was made, if something is mounted in it, or if a part
            stays; the entry stays too.
    """
    path = Path(entry.facts["path"])
    real = path.parent.resolve() / path.name
    mounted = next((mount for mount in mounts.mounts() if mount.point.is_relative_to(real)), None)
    if mounted is not None:
        raise TierwiseError(f"{path}: {mounted.source} is mounted in it", f"umount {mounted.point}")
    other = TierwiseError(
        f"{path} is not what tierwise made as {entry.name}", f"rm {entry.path}, if you know what that was"
    )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        entry.remove()
        return
    except OSError:
        if "inode" in entry.facts:
            raise other from None
        entry.remove()  # a link or a file in the place of a directory that only tierwise can replace
        return
    try:
        # The crash may have come before it was known; then nothing is in it.
        if os.fstat(descriptor).st_ino != entry.facts.get("inode", os.fstat(descriptor).st_ino):
            raise other
        with os.scandir(descriptor) as found:
            names = [file.name for file in found]
        for name in names:
            try:
                os.unlink(name, dir_fd=descriptor)
            except OSError:
                shutil.rmtree(name, ignore_errors=True, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    try:
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:  # on a device that failed, it goes with the device
        if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
            raise TierwiseError(
                f"{path}: {error.strerror}", "end what uses it, then tierwise clean"
            ) from error
    entry.remove()


def passage_directory(prefix: str, user: ServerUser | None, parent: Path | None = None) -> LedgerDirectory:
    """As :func:`make_directory`: only the caller may write to it, only he and ``user`` pass through it."""
    if user is None:
        return make_directory(prefix, parent)
    return make_directory(prefix, parent, 0o710, (-1, user.gid))
