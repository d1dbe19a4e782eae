"""The target of a recording: the processes of a database, its engine, and the roles of its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tierwise.capture import rules as rule_files
from tierwise.capture.facts import RoleOf
from tierwise.capture.rules import Rules
from tierwise.host import cpu, ledger
from tierwise.model.errors import TierwiseError


def _emulated_disk_servers() -> list[int]:
    """Pids of the servers of all emulated disks of this machine."""
    servers = (entry.facts.get("server") for entry in ledger.entries("disk"))
    return [server["pid"] for server in servers if server]


@dataclass(frozen=True)
class Target:
    """A running database."""

    processes: Callable[[], list[int]]
    """Its current pids; their children belong to it too."""
    rules: Rules
    role_of: RoleOf
    root: Path = Path("/")
    """Root of its file system, as seen by this process."""
    engine: str = ""
    """Name of the engine if it differs from that of the rules."""
    version: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    clients: Callable[[], list[int]] | None = None
    """Its client threads, if known; else they are found by the threads that they wake."""
    disk_servers: Callable[[], list[int]] = _emulated_disk_servers
    """Pids of servers of emulated disks. Their CPU time counts as storage, not as other programs."""

    @property
    def mounts_of(self) -> int | None:
        """Pid of the process whose mounts count; ``None`` for this process's mounts."""
        return None if self.root == Path("/") else int(self.root.parent.name)


def of_pid(pid: int, rules: Rules | None = None) -> Target:
    """The process with a pid, and all its descendants.

    Raises:
        TierwiseError: if there is no such process, or no rules for its engine.
    """
    if not Path(f"/proc/{pid}").exists() or pid < 1:
        raise TierwiseError(
            f"--pid: there is no process {pid}", "give the pid of the database's first process"
        )
    program = program_of(pid)
    rules = rules or rule_files.of_program(program)
    if rules is None:
        raise TierwiseError(
            f"--pid: process {pid} ({program}) is of no engine that tierwise knows",
            f"give --rules with one of {', '.join(rule_files.names())}, or a TOML file",
        )
    return Target(lambda: sorted(cpu.tree(pid)), rules, rules.role_of, root_of(pid))


def of_engine(name: str, rules: Rules | None = None) -> Target:
    """The only running server of an engine on this machine.

    Raises:
        TierwiseError: if none runs, or several do, naming their pids.
    """
    return of_pid(pid_of_engine(name), rules or rule_files.load(name))


def pid_of_engine(name: str) -> int:
    """First process of the only running server of an engine on this machine.

    Raises:
        TierwiseError: if none runs, or several do, naming their pids.
    """
    known = rule_files.load(name)
    pids = first_processes(known.parsed.programs)
    if not pids:
        raise TierwiseError(
            f"--engine: no process named {' or '.join(known.parsed.programs)} runs", "start it, or give --pid"
        )
    if len(pids) > 1:
        listed = ", ".join(map(str, pids))
        raise TierwiseError(f"--engine: several servers of {name} run: {listed}", "choose one with --pid")
    return pids[0]


def first_processes(programs: list[str]) -> list[int]:
    """Pids of the processes with one of these names whose parents have none of them."""
    named = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text().strip() in programs:
                named[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return sorted(pid for pid, parent in named.items() if parent not in named)


def program_of(pid: int) -> str:
    """Name of a process as the kernel shows it; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def root_of(pid: int) -> Path:
    """Root of a process's files as seen by this process; a container has its own."""
    theirs = Path(f"/proc/{pid}/root")
    try:
        same = theirs.stat() == Path("/").stat() and _mount_space(pid) == _mount_space(os.getpid())
    except OSError:
        return Path("/")
    return Path("/") if same else theirs


def _mount_space(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/mnt").readlink())
