"""Files of others: only regular ones are read, of a limited size, and a signal ends a long read."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from support import forked
from support.malformed_recordings import printed_forecast, small_recording
from support.other_users import needs_root
from tierwise.capture import engine_counters
from tierwise.capture.target import RecordingTarget, load_rules
from tierwise.host import mounts, page_cache
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text

PACKAGE = Path(__file__).parents[3] / "python" / "tierwise"
EXAMPLE = Path(__file__).parents[3] / "examples" / "recordings" / "keyed-update"

RECORDING_COMMANDS = {
    "show": ["recording", "show", "IT"],
    "list": ["recording", "list", "IT/.."],
    "redact": ["recording", "redact", "IT", "-o", "IT/../out"],
    "profile": ["profile", "IT"],
    "predict": ["predict", "IT", "--place", "log=nvme-dc"],
    "together": ["predict", "IT", str(EXAMPLE), "--place", "r.log=nvme-dc#1"],
    "advise": ["advise", "IT", "--devices", "nvme-dc"],
    "fleet": ["fleet", "advise", "IT", "--devices", "nvme-dc"],
    "verify": ["verify", "IT/../forecast.json", "IT"],
    "serve": ["serve", "IT", "--devices", "nvme-dc"],
}
FILE_COMMANDS = {
    "study": ["study", "show", "IT.toml"],
    "workload": ["workload", "check", "IT", "--engine", "sqlite"],
    "profile": ["device", "show", "IT.toml"],
    "placement": ["predict", str(EXAMPLE), "--place", "log=IT.toml"],
    "requests": ["device", "simulate", "ram", "--requests", "IT.csv"],
    "import": ["device", "import", "IT.json", "IT.csv"],
    "prices": ["advise", str(EXAMPLE), "--devices", "nvme-dc", "--prices", "IT.toml"],
    "weights": ["fleet", "advise", str(EXAMPLE), "--devices", "nvme-dc", "--weights", "IT.toml"],
    "forecast": ["verify", "IT.json", str(EXAMPLE)],
    "cases": ["validate", "IT.toml", "--estimate"],
    "results": ["report", "IT"],
    "comparison": ["compare", "IT", "IT"],
}


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix_socket:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket has 107 bytes at most
        try:
            unix_socket.bind(path.name)
        finally:
            os.chdir(here)


def a_directory(path: Path) -> None:
    path.mkdir()


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link(path: Path) -> None:
    content = path.with_name("elsewhere")
    content.write_bytes(b"")
    path.symlink_to(content)


NO_FILES = [a_pipe, a_socket, a_directory, a_device, a_link]


@pytest.mark.parametrize("asked", RECORDING_COMMANDS.values(), ids=RECORDING_COMMANDS)
@pytest.mark.parametrize("name", ["about.json", "observation.json"])
def test_a_pipe_in_a_recording_is_refused_at_once(name: str, asked: list[str], tmp_path: Path) -> None:
    path = small_recording(tmp_path / "r")
    (tmp_path / "forecast.json").write_bytes(printed_forecast())
    (path / name).unlink(missing_ok=True)
    a_pipe(path / name)
    if name == "observation.json" and asked[0] in ("recording", "serve"):
        pytest.skip("reads recordings only")
    printed = forked.command(*(word.replace("IT", str(path)) for word in asked)).refusal
    assert name in printed


@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize("name", ["about.json", "states.parquet", "threads.parquet"])
def test_only_files_of_a_recording_are_read(name: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    path = small_recording(tmp_path / "r")
    (path / name).unlink()
    make(path / name)
    assert name in forked.command("profile", path, "--no-savings").refusal


@pytest.mark.parametrize("make", [a_pipe, a_socket, a_directory, a_device])
@pytest.mark.parametrize("asked", FILE_COMMANDS.values(), ids=FILE_COMMANDS)
def test_only_files_are_read(asked: list[str], make: Callable[[Path], None], tmp_path: Path) -> None:
    it = tmp_path / "it"
    it.mkdir()
    for suffix in ("toml", "csv", "json"):
        make(tmp_path / f"it.{suffix}")
    for name in ("results.jsonl", "study.json", "workload.toml"):
        make(it / name)
    printed = forked.command(*(word.replace("IT", str(it)) for word in asked)).refusal
    assert re.search(r"no regular file|(is a|is no) directory|symbolic link|does not lie in", printed), (
        printed
    )


def test_what_a_profile_is_like_is_a_file(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('like = "base"\n')
    a_pipe(tmp_path / "base.toml")
    assert "base.toml" in forked.command("device", "show", own).refusal
    (tmp_path / "base.toml").unlink()
    (tmp_path / "base.toml").symlink_to("/etc/passwd")
    assert "does not lie in" in forked.command("device", "show", own).refusal


def test_links_of_a_day_are_left_out(tmp_path: Path) -> None:
    small_recording(tmp_path / "day" / "one")
    (tmp_path / "day" / "two").symlink_to(EXAMPLE)
    printed = forked.command("profile", tmp_path / "day").printed
    assert f"left out: {tmp_path}/day/two is a link" in printed.replace("\n", " ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_long_read(number: signal.Signals, tmp_path: Path) -> None:
    path = small_recording(tmp_path / "r")
    with (path / "states.parquet").open("wb") as file:
        file.truncate(4 << 40)
    about = json.loads((path / "about.json").read_bytes())
    about["tables"]["states"]["size_bytes"] = 4 << 40
    (path / "about.json").write_text(json.dumps(about))
    argv = [sys.executable, "-m", "tierwise", "profile", str(path), "--no-savings"]
    # Whoever started the tests may ignore a signal, as nohup does.
    default = partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=default,  # noqa: PLW1509
    ) as reading:
        try:
            for _ in range(600):  # until it reads the table, or has ended
                names = {file.path.name for file in page_cache.open_files([reading.pid])}
                if reading.poll() is not None or "states.parquet" in names:
                    break
                time.sleep(0.1)
            assert reading.poll() is None, "it did not read the whole of the table"
            reading.send_signal(number)
            assert reading.wait(30) == 130
        finally:
            reading.kill()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TierwiseError, match="above"):
        read_text(path, "name another")
    (tmp_path / "results").mkdir()
    with (tmp_path / "results" / "results.jsonl").open("wb") as file:
        file.truncate(1 << 30)
    printed = forked.command("compare", tmp_path / "results", tmp_path / "results").refusal
    assert "a line has more than" in printed


def test_a_pipe_in_place_of_a_control_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "global").mkdir()
    os.mkfifo(tmp_path / "global" / "pg_control")
    with subprocess.Popen(["/bin/sleep", "1000"], cwd=tmp_path) as server:
        target = RecordingTarget(lambda: [server.pid], load_rules("postgres"))
        asked: list[str | None] = []
        asking = threading.Thread(
            target=lambda: asked.append(engine_counters._system_identifier_of(target)), daemon=True
        )
        asking.start()
        asking.join(10)
        server.kill()
    assert asked == [None]


# Mounts whose names are two lines for Python: a user may make some, with FUSE or in namespaces of his own.
_MOUNTING = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
assert libc.unshare(0x00020000) == 0  # CLONE_NEWNS
assert libc.mount(b"none", b"/", None, 1 << 18 | 16384, None) == 0  # MS_PRIVATE, MS_REC
assert libc.mount(b"none", os.fsencode(sys.argv[1]), b"tmpfs", 0, None) == 0
print("mounted", flush=True)
time.sleep(1000)
"""


@needs_root
@pytest.mark.parametrize("separator", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\n", " "])
def test_a_mount_of_any_name_is_one_mount(separator: str, tmp_path: Path) -> None:
    (point := tmp_path / f"a{separator}b").mkdir()
    argv = [sys.executable, "-c", _MOUNTING, str(point)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as theirs:
        assert theirs.stdout is not None and theirs.stdout.readline()
        try:
            points = [mount.point for mount in mounts.mounts(theirs.pid)]
        finally:
            theirs.kill()
    assert point in points


OF_THIS_MACHINE = {"model", "host", "engines", "probe", "capture", "clients", "servers"}
"""Folders that read the kernel's files, the package's, and those of what tierwise started."""
OWN = (
    r"FOLDER|DATA|REMEDIES|_HERE|_SHIPPED|MEANINGS_FILE|shipped|__file__|_IDLE_POLL|source\.|/ \"comm\""
    r"|file\.stem"
    r"|read_text\(\"ascii\"\)|format_map\(parameters\)"
)
"""What lines have that read the package's files, the kernel's, or what the line before has written."""
READERS = ("read_text", "read_bytes")


def test_files_of_others_are_read_by_one_function() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if OF_THIS_MACHINE & set(path.relative_to(PACKAGE).parts):
            continue
        text = path.read_text("utf-8")
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            match call.func:
                case ast.Attribute(attr=name, value=ast.Name(id=of)):
                    reads = name in READERS and of != "input_files"
                case ast.Attribute(attr=name):
                    reads = name in READERS
                case ast.Name(id=name):
                    reads = name == "open"
                case _:
                    reads = False
            line = text.splitlines()[call.lineno - 1]
            assert not reads or re.search(OWN, line) or "table.read" in line, f"{path}:{call.lineno} {line}"


def test_the_core_reads_files_of_others_by_one_function() -> None:
    crates = PACKAGE.parents[1] / "crates"
    for name in ("recording", "simulate", "device", "work", "replay"):
        for path in (crates / name / "src").rglob("*.rs"):
            text = path.read_text("utf-8").partition("#[cfg(test)]")[0]
            matches = re.findall(
                r"\bFile::open\((?!&self\.path)|fs::read\(|fs::read_to_string\((?!\"/proc)", text
            )
            assert not matches, path
