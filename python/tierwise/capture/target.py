"""The target of a recording: the processes of a database, its engine, and the roles of its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise._core import Rules
from tierwise.capture import client_programs
from tierwise.capture import rules as rule_files
from tierwise.host import cpu
from tierwise.model.errors import TierwiseError


@dataclass(frozen=True)
class Target:
    """A running database."""

    processes: Callable[[], list[int]]
    """Its current pids; their children belong to it too."""
    rules: Rules
    role_of: Callable[[str], str | None] | None = None
    """Role of a file by its path; by default, the rules give it."""
    root: Path = Path("/")
    """Root of its file system, as seen by this process."""
    engine: str = ""
    """Name of the engine if it differs from that of the rules."""
    version: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    clients: Callable[[], list[int]] | None = None
    """Its client threads, if known; else they are found by the threads that they wake."""
    disk_servers: Callable[[], list[int]] | None = None
    """Pids of servers of emulated disks, whose CPU time counts as storage and not as other programs.

    By default of those disks that hold files with roles when the recording begins.
    """
    pid: int | None = None
    """Its first process, if that is known."""


def of_pid(pid: int, rules: Rules | None = None, roles: Sequence[str] = ()) -> Target:
    """The process with a pid, and all its descendants.

    Args:
        pid: of the first process.
        rules: of its files' roles; by default those of its program.
        roles: roles of files that go before the rules, as ``PATH=ROLE``.

    Raises:
        TierwiseError: if there is no such process, it is a client, or there are no rules for its engine.
    """
    if not Path(f"/proc/{pid}").exists() or pid < 1:
        raise TierwiseError(
            f"--pid: there is no process {pid}", "give the pid of the database's first process"
        )
    program = rule_files.program_of(pid)
    client_programs.refuse_process(pid, program)
    rules = rules or rule_files.for_program(program, f"--pid: process {pid} ({program})")
    root = _core.process_root(pid)
    rules = rule_files.with_roles(rules.on_server(pid, root), roles)
    return Target(
        lambda: sorted(cpu.tree(pid)),
        rules,
        root=root,
        version=server_at(pid, rules)["version"],
        settings=_core.settings_of(pid, rules, root),
        pid=pid,
    )


def pid_of_engine(name: str) -> int:
    """First process of the only running server of an engine on this machine.

    Raises:
        TierwiseError: if none runs, or several do, naming their pids.
    """
    programs = rule_files.load(name).programs
    pids = _core.first_processes(programs)
    if not pids:
        raise TierwiseError(
            f"--engine: no process named {' or '.join(programs)} runs", "start it, or give --pid"
        )
    if len(pids) > 1:
        raise TierwiseError(
            f"--engine: several servers of {name} run: {_core.servers_listed(pids)}", "choose one with --pid"
        )
    return pids[0]


def server_at(pid: int, rules: Rules) -> dict[str, Any]:
    """What tells the server whose first process has a pid from others of its host, without asking it.

    Returns:
        Its ``pid``, ``version``, ``ports``, ``sockets``, ``data_directory`` and ``in_container``; and
        ``described``, all of it in words.
    """
    found: dict[str, Any] = json.loads(_core.server_of(pid, rules, _core.process_root(pid)))
    return found
