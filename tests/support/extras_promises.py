"""What the package and each extra do alone; tools/try_extras.py shows it with real installations."""

from __future__ import annotations

import http.client
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.paths import RECORDINGS

RECORDING = RECORDINGS / "small-objects"
SMALL: Mapping[str, list[str]] = {
    "predict": ["predict", "{recording}", "--place", "log=nvme-dc"],
    "advise": ["advise", "{recording}", "--devices", "nvme-dc", "-o", "{tmp}/advice.html"],
    "profile": ["profile", "{recording}"],
    "open": ["recording", "show", "{recording}"],
    "devices": ["device", "show", "nvme-dc"],
    "studies": ["study", "list"],
    "help": ["--help"],
}
"""Commands that need no extra."""
PROMISES: Mapping[str, list[str]] = {
    "report": ["predict", "{recording}", "--place", "log=nvme-dc", "--png", "{tmp}/chart.png"],
    "lab": ["validate", "--quick", "--estimate"],
    "cluster": ["fleet", "advise", "{recording}", "--devices", "nvme-dc", "--budget", "40/month"],
    "serve": ["serve", "{recording}", "--devices", "nvme-dc"],
    **{
        engine: ["study", "run", f"{{tmp}}/{engine}.toml", "-o", "{tmp}/results"]
        for engine in ("postgres", "mariadb", "rocksdb", "duckdb", "sqlite")
    },
}
"""Extra -> a command that needs it, and no other."""
TIMEOUT_S = 120
_STUDY = """
name = "{engine}"
question = "?"
engines = ["{engine}"]
workload = "crud"
scale = 0.02
repeats = 1
baseline = "one"
[devices.own]
path = "{own}"
[placements.one]
default = "own"
"""


def written(tmp: Path, arguments: list[str]) -> list[str]:
    """The arguments with the files that they name, of which studies are made."""
    own = tmp / "own"
    own.mkdir(mode=0o755, exist_ok=True)
    for engine in PROMISES:
        (tmp / f"{engine}.toml").write_text(_STUDY.format(engine=engine, own=own))
    return [argument.format(tmp=tmp, recording=RECORDING) for argument in arguments]


def run(
    python: Path, environment: Mapping[str, str], tmp: Path, arguments: list[str]
) -> subprocess.CompletedProcess[str]:
    """A command of tierwise; a server gets one request and is interrupted."""
    command = [str(python), "-m", "tierwise", *written(tmp, arguments)]
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=dict(environment), cwd=tmp, **piped) as process:
        if arguments[0] == "serve" and process.stdout:
            url = urlsplit(process.stdout.readline().strip())
            if url.netloc:
                connection = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT_S)
                connection.request("GET", f"{url.path}1/")
                assert connection.getresponse().status == 200
                process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def names_the_line(refused: subprocess.CompletedProcess[str], extra: str) -> bool:
    """Whether a command ended with the one line that says what to type, for an extra."""
    return (
        refused.returncode == 3
        and refused.stderr.count("\n") == 1
        and refused.stderr.endswith(f": type: pip install 'tierwise[{extra}]'\n")
    )
