"""Several servers of one engine, and several processes of one server: none is guessed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.engine_contract import until
from tierwise.capture import target
from tierwise.capture.target import program_of_process
from tierwise.host import cpu
from tierwise.model.errors import TierwiseError


def test_several_servers_are_not_guessed_among(tmp_path: Path) -> None:
    program = tmp_path / "dataserver"
    program.symlink_to(str(shutil.which("cat")))  # whose name the kernel takes for the process
    servers = [subprocess.Popen([program], stdin=subprocess.PIPE) for _ in range(2)]
    try:
        # The name comes last when a program is begun.
        until(lambda: all(program_of_process(server.pid) == "dataserver" for server in servers))
        with pytest.raises(TierwiseError, match=f"{min(s.pid for s in servers)}, .*--pid"):
            target.pid_of_engine("ase")
    finally:
        for server in servers:
            server.communicate()


def test_a_child_of_a_server_is_refused_with_the_first_process(tmp_path: Path) -> None:
    """A recording of a backend or a checkpointer alone looks like one of an idle server."""
    first, child = tmp_path / "first" / "dataserver", tmp_path / "child" / "dataserver"
    for name, program in ((first, "sh"), (child, "cat")):
        name.parent.mkdir()
        name.symlink_to(str(shutil.which(program)))
    server = subprocess.Popen([first, "-c", f"{child}; true"], stdin=subprocess.PIPE)
    try:
        until(lambda: [program_of_process(pid) for pid in cpu.process_tree(server.pid)] == ["dataserver"] * 2)
        (pid,) = cpu.process_tree(server.pid) - {server.pid}
        with pytest.raises(TierwiseError, match=f"{pid} .* child of process {server.pid}.*{server.pid}"):
            target.target_of_process(pid)
    finally:
        server.communicate()
