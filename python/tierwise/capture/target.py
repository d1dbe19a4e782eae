"""The target of a recording: a database's processes, its engine, the roles of its files, its clients."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise._core import Rules
from tierwise.host import cpu
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, read_text
from tierwise.model.names import unknown_name_fix
from tierwise.recording import remove_recording
from tierwise.recording.breakdown import break_down

_REPLICA = "replica"
"""A server that is a client of another one has files of its own."""
_WRAPPERS = frozenset(
    (
        *("sh", "bash", "dash", "ash", "zsh", "ksh", "env", "time", "timeout", "nohup", "setsid", "stdbuf"),
        *("sudo", "doas", "su", "runuser", "setpriv", "nice", "ionice", "chrt", "taskset", "numactl"),
        *("strace", "perf", "systemd-run", "cgexec", "unshare", "nsenter", "chroot"),
    )
)
"""Programs that start the command that follows them."""
_FIRST_LOOK_S, _LONGEST_WAIT_S = 0.2, 30.0


def refuse_client_command(command: Sequence[str], out: Path) -> None:
    """Refuse a command that is a client by its name, before it runs."""
    if _is_client(name := _program_in(command)):
        raise _no_database_error(f"{name} is a client", out, all_server_processes())


def refuse_client_process(pid: int, program: str) -> None:
    """Refuse a running client by its name."""
    if _is_client(program):
        servers, _ = _core.servers_of([pid])
        raise _no_database_error(f"--pid: process {pid} ({program}) is a client", Path("DIR"), servers)


def _is_client(name: str) -> bool:
    return _core.client_kind(name) not in (None, _REPLICA)


def _program_in(command: Sequence[str]) -> str:
    """Name of the program that a command starts, also by way of others; empty if it is not said."""
    option = wrapped = False
    for word in command:
        name = Path(word).name
        if _is_client(name):
            return name
        if option and wrapped and " " in word:  # sh -c "psql …"
            return _program_in(_shell_words(word))
        if name in _WRAPPERS:
            wrapped, option = True, False
        elif word.startswith("-"):
            option = True
        elif wrapped and (option or "=" in word or word[:1].isdigit()):
            option = False
        else:
            return name
    return ""


def _shell_words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    return words[words[0] == "exec" :] if words else []


def _no_database_error(what: str, out: Path, servers: Sequence[int]) -> TierwiseError:
    if not servers:
        return TierwiseError(
            f"{what}: a recording of it shows nothing of its server's files, and no server that tierwise "
            "knows runs here",
            "record on the server's host, with --pid of the server",
        )
    choice = str(servers[0]) if len(servers) == 1 else "PID"
    return TierwiseError(
        f"{what}: a recording of it shows nothing of its server's files. Servers here: "
        f"{_core.servers_listed(servers)}",
        f"record the server while the client runs: tierwise record -o {out} --pid {choice}",
    )


class ConnectedServers:
    """Servers that the processes of a command were connected to; looked for on a thread, ever less often."""

    def __init__(self, processes: Callable[[], list[int]]) -> None:
        self._processes = processes
        self.pids: set[int] = set()
        self.elsewhere = False
        self.programs: set[str] = set()
        """Known clients among the processes."""

    def look_until(self, ended: threading.Event) -> None:
        """Look until the command has ended, or a server on this host was found."""
        wait_s = _FIRST_LOOK_S
        while not ended.wait(wait_s) and not self.pids:
            self.look()
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def look(self) -> None:
        """Look once."""
        processes = self._processes()
        self.programs.update(name for name in map(program_of_process, processes) if _is_client(name))
        pids, elsewhere = _core.servers_of(processes)
        self.pids.update(pids)
        self.elsewhere |= elsewhere

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self.pids or self.elsewhere or self.programs)

    def refuse(self, name: str, out: Path) -> None:
        """Refuse a program that talked to a server and opened no database itself, as an application may.

        Args:
            out: its recording, which is removed.
        """
        if not self.any or any(row.role is not None for row in break_down(out).roles):
            return
        remove_recording(out)
        clients = f" by {', '.join(sorted(self.programs))}" if self.programs else ""
        what = f"{name} opened no file of a database and talked to a server{clients}"
        raise _no_database_error(what, out, sorted(self.pids) or all_server_processes())


_SHIPPED = DATA / "rules"
_SUFFIX = ".toml"
_WITH_RULES_OF = {"mysql": "mariadb"}
"""Engine -> the engine whose programs and rules it has."""


def engines_with_rules() -> list[str]:
    """Engines with shipped rules."""
    files = [file.name for file in _SHIPPED.iterdir()]
    return sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))


def load_rules(name: str) -> Rules:
    """Load the rules of an engine by its name, or from a user's file."""
    if name.endswith(_SUFFIX):
        return _parse(read_text(Path(name), "name a readable file of rules"), name)
    known = sorted([*engines_with_rules(), *_WITH_RULES_OF])
    if name not in known:
        raise TierwiseError(
            f"there are no rules for engine {name!r}", f"{unknown_name_fix(name, known)}, or a TOML file"
        )
    return _shipped(_WITH_RULES_OF.get(name, name))


def rules_with_roles(rules: Rules, given: Sequence[str]) -> Rules:
    """Rules after roles given as ``PATH=ROLE``."""
    try:
        return rules.with_roles(given)
    except ValueError as error:
        raise TierwiseError(*error.args) from None


def find_rules_of_program(program: str) -> Rules | None:
    """The rules of the engine whose processes have that name, if any."""
    return next((rules for rules in map(_shipped, engines_with_rules()) if program in rules.programs), None)


def rules_of_program(program: str, what: str) -> Rules:
    """The rules of the engine whose processes have that name."""
    if (rules := find_rules_of_program(program)) is None:
        raise TierwiseError(
            f"{what} is of no engine that tierwise knows",
            f"give --rules with one of {', '.join(engines_with_rules())}, or a TOML file",
        )
    return rules


def program_of_process(pid: int) -> str:
    """Name of a process as the kernel shows it; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def first_process_of(pid: int) -> int | None:
    """First process of the server that a process is of; ``None`` if it is of none that tierwise knows."""
    first = None
    while (rules := find_rules_of_program(program_of_process(pid))) is not None and rules.is_server:
        first = pid
        pid = cpu.parent_pid(pid) or 0
    return first


def all_server_processes() -> list[int]:
    """First processes of all servers of this host."""
    known = [rules for rules in map(_shipped, engines_with_rules()) if rules.is_server]
    return _core.first_processes([program for rules in known for program in rules.programs])


@cache
def _shipped(name: str) -> Rules:
    return _parse(_SHIPPED.joinpath(name + _SUFFIX).read_text("utf-8"), name + _SUFFIX)


def _parse(text: str, file: str) -> Rules:
    try:
        return Rules(text, file)
    except ValueError as error:
        raise TierwiseError(*error.args) from None


@dataclass(frozen=True)
class RecordingTarget:
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
    names_from_files: bool = False
    """Whether the names of its tables are read from its files when the recording ends."""


def target_of_process(pid: int, rules: Rules | None = None, roles: Sequence[str] = ()) -> RecordingTarget:
    """The process with a pid, and all its descendants."""
    if not Path(f"/proc/{pid}").exists() or pid < 1:
        raise TierwiseError(
            f"--pid: there is no process {pid}", "give the pid of the database's first process"
        )
    program = program_of_process(pid)
    refuse_client_process(pid, program)
    _core.require_first(pid, program)
    rules = rules or rules_of_program(program, f"--pid: process {pid} ({program})")
    _require_same_engine(rules, program)
    root = _core.process_root(pid)
    _core.require_visible_files(pid, rules, root)
    rules = rules_with_roles(rules.on_server(pid, root), roles)
    return RecordingTarget(
        lambda: sorted(cpu.process_tree(pid)),
        rules,
        root=root,
        engine=_core.engine_of_processes([pid], rules),
        version=identify_server(pid, rules)["version"],
        settings=_core.settings_of(pid, rules, root),
        pid=pid,
    )


def _require_same_engine(rules: Rules, program: str) -> None:
    """Refuse the rules of one server for the program of another; of a library, a server may have files."""
    own = find_rules_of_program(program)
    if (
        own is not None
        and own.is_server
        and rules.is_server
        and own.engine != rules.engine
        and rules.engine in engines_with_rules()
    ):
        raise TierwiseError(
            f"--rules: those of {rules.engine} are given, and {program} is a program of {own.engine}: its "
            "files and transactions would be taken for others",
            "leave out --rules",
        )


def pid_of_engine(name: str) -> int:
    """First process of the only running server of an engine on this machine."""
    rules = load_rules(name)
    pids = _core.first_processes(rules.programs)
    if not pids:
        raise TierwiseError(
            f"--engine: no process named {' or '.join(rules.programs)} runs", "start it, or give --pid"
        )
    if name in {*_WITH_RULES_OF, *_WITH_RULES_OF.values()}:
        others, pids = pids, [pid for pid in pids if _core.engine_of_processes([pid], rules) == name]
        if not pids:
            raise TierwiseError(
                f"--engine: no server of {name} runs, but {_core.servers_listed(others)}",
                "name the engine that runs, or give --pid",
            )
    if len(pids) > 1:
        raise TierwiseError(
            f"--engine: several servers of {name} run: {_core.servers_listed(pids)}", "choose one with --pid"
        )
    return pids[0]


def identify_server(pid: int, rules: Rules) -> dict[str, Any]:
    """What tells the server whose first process has a pid from others of its host, without asking it.

    Returns:
        Its ``pid``, ``version``, ``ports``, ``sockets``, ``data_directory`` and ``in_container``; and
        ``described``, all of it in words.
    """
    server: dict[str, Any] = json.loads(_core.server_of(pid, rules, _core.process_root(pid)))
    return server
