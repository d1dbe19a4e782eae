"""A Dask scheduler can run code in its clients: which ones a command connects to."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from support.other_users import needs_root, start
from support.paths import RECORDINGS, ROOT
from tierwise.cli import app

pytest.importorskip("distributed", reason="needs the extra `cluster`")

EXAMPLE = str(RECORDINGS / "keyed-update")
FOREIGN = "tcp://192.0.2.1:8786"
"""Of a network that is for examples only."""
COMMANDS = {
    "fleet": ["fleet", "advise", EXAMPLE, "--devices", "nvme-dc"],
    "predict": ["predict", EXAMPLE, "--place", "log=nvme-dc"],
    "advise": ["advise", EXAMPLE, "--devices", "nvme-dc"],
    "validate": ["validate", "--judge-only", "-o", str(ROOT / "docs" / "evidence" / "validation")],
    "study": ["study", "run", "redo-placement"],
}
LISTEN = """
import socket, time
with socket.create_server(("127.0.0.1", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    while True:
        listening.accept()
        print("connected", flush=True)
"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.cluster.dask_executor.CONNECT_TIMEOUT_S", 1)


def refusal(command: str, address: str, *more: str) -> str:
    option = "--hosts" if command == "study" else "--scheduler"
    result = CliRunner().invoke(app, [*COMMANDS[command], option, address, *more])
    assert result.exit_code != 0
    return str(result.exception)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("address", [FOREIGN, "tcp://db.example:8786", "tcp://[2001:db8::1]:8786"])
def test_a_scheduler_elsewhere_needs_tls_or_trust(command: str, address: str) -> None:
    message = refusal(command, address)
    assert f"{address} is not encrypted" in message and "--trust-scheduler" in message and "tls://" in message


@pytest.mark.parametrize("command", COMMANDS)
def test_with_trust_it_is_tried(command: str) -> None:
    option = "--hosts" if command == "study" else "--scheduler"
    assert f"{option}: {FOREIGN} does not answer" in refusal(command, FOREIGN, "--trust-scheduler")


def test_a_failed_connection_ends_with_its_error_alone() -> None:
    command = [sys.executable, "-m", "tierwise", *COMMANDS["predict"], "--scheduler", "tls://127.0.0.1:1"]
    ended = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    assert "does not answer" in ended.stderr and "Traceback" not in ended.stderr


def test_tls_needs_no_further_word() -> None:
    message = refusal("predict", "tls://192.0.2.1:8786")
    assert "does not answer" in message


@needs_root
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_connects_to_another_users_port_on_this_machine(command: str) -> None:
    with start(LISTEN) as theirs:
        assert theirs.stdout is not None
        address = f"tcp://127.0.0.1:{theirs.stdout.readline().strip()}"
        message = refusal(command, address)
        theirs.kill()
        assert not theirs.stdout.read()
    assert f"nobody listens at {address}" in message and "--trust-scheduler" in message


def test_a_scheduler_of_the_callers_on_this_machine_needs_no_further_word() -> None:
    from tierwise.cluster import dask_executor

    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, ""), (socket.AF_INET6, "::1")):
        with socket.create_server((host, 0), family=family) as listening:
            shown = "[::1]" if host == "::1" else "127.0.0.1"
            port = listening.getsockname()[1]
            dask_executor.check_scheduler_address(f"tcp://{shown}:{port}", "--scheduler", trusted=False)
            dask_executor.check_scheduler_address(f"tcp://localhost:{port}", "--scheduler", trusted=False)
