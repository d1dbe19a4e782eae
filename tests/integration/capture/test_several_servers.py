"""Several servers of one engine: none is guessed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.engine_contract import until
from tierwise.capture import target
from tierwise.capture.target import program_of
from tierwise.model.errors import TierwiseError


def test_several_servers_are_not_guessed_among(tmp_path: Path) -> None:
    program = tmp_path / "dataserver"
    program.symlink_to(str(shutil.which("cat")))  # whose name the kernel takes for the process
    servers = [subprocess.Popen([program], stdin=subprocess.PIPE) for _ in range(2)]
    try:
        # The name comes last when a program is begun.
        until(lambda: all(program_of(server.pid) == "dataserver" for server in servers))
        with pytest.raises(TierwiseError, match=f"{min(s.pid for s in servers)}, .*--pid"):
            target.pid_of_engine("ase")
    finally:
        for server in servers:
            server.communicate()
