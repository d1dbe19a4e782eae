"""Processes of servers on this host: which there are, which belong together, and what tells them apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tierwise import _core
from tierwise.capture import rules as rule_files
from tierwise.capture.rules import Rules
from tierwise.host import cpu


@dataclass(frozen=True)
class ServerFacts:
    """What tells a server from others of its host, without asking it."""

    pid: int
    version: str | None
    ports: list[int]
    sockets: list[str]
    data_directory: str | None
    in_container: bool
    described: str
    """All of it in words."""


def server_at(pid: int, rules: Rules) -> ServerFacts:
    """The server whose first process has a pid."""
    return ServerFacts(**json.loads(_core.server_of(pid, rules.parsed, root_of(pid))))


def all_servers() -> list[int]:
    """First processes of all servers of this host."""
    known = (rule_files.load(name) for name in rule_files.names())
    programs = [program for rules in known if rules.parsed.is_server for program in rules.parsed.programs]
    return first_processes(programs)


def first_process_of(pid: int) -> int | None:
    """First process of the server that a process is of; ``None`` if it is of none that tierwise knows."""
    first = None
    while (rules := rule_files.of_program(program_of(pid))) is not None and rules.parsed.is_server:
        first = pid
        pid = cpu.parent_of(pid) or 0
    return first


def first_processes(programs: list[str]) -> list[int]:
    """Pids of the processes with one of these names whose parents have none of them."""
    return _core.first_processes(programs)


def program_of(pid: int) -> str:
    """Name of a process as the kernel shows it; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def root_of(pid: int) -> Path:
    """Root of a process's files as seen by this process; a container has its own."""
    return _core.process_root(pid)
