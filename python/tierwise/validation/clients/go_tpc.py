"""go-tpc: TPC-C, and TPC-C with analytical queries beside it (CH), on PostgreSQL and on MariaDB."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

from tierwise.model.errors import TierwiseError
from tierwise.validation.clients.base import Client, Load, command
from tierwise.validation.servers.base import DATABASE, Server, find_program
from tierwise.validation.servers.mariadb import MariadbServer

MODULE = "github.com/pingcap/go-tpc/cmd/go-tpc@latest"
_SUMMARY = re.compile(
    r"^\[Summary\] (?P<name>[A-Z_]+) - Takes\(s\): (?P<takes>[\d.]+), Count: (?P<count>\d+).*?"
    r"50th\(ms\): (?P<p50>[\d.]+).*?95th\(ms\): (?P<p95>[\d.]+), "
    r"(?:98th\(ms\): [\d.]+, )?99th\(ms\): (?P<p99>[\d.]+)",
    re.MULTILINE,
)
_MAIN = "NEW_ORDER"
"""The transaction whose latencies are reported: the one that TPC-C's rate counts."""
_FOLDER = "TIERWISE_GO_BIN"


def folder() -> Path:
    """Where the program is installed: a private directory of the caller's cache."""
    own = os.environ.get(_FOLDER)
    return Path(own) if own else Path.home() / ".cache" / "tierwise" / "go"


class GoTpc(Client[Server]):
    """``work`` is ``tpcc`` or ``ch``; ``scale`` counts warehouses."""

    family = "go-tpc"
    over_tcp = True
    program = "go-tpc"
    package = f"Go: GOBIN={folder()} go install {MODULE}"
    defaults: ClassVar = {"work": "tpcc", "scale": 2}

    @property
    def dataset(self) -> str:
        """CH adds tables."""
        return f"{self.family}-{self.text('work')}-{self.text('scale')}"

    def missing(self) -> str | None:
        """Install the program if Go is available; else return how to install it."""
        if _program() is not None:
            return None
        go = find_program("go")
        if go is None:
            return f"go-tpc is not installed ({self.package}; Debian: golang-go)"
        return _install(go)

    def prepare(self, database: Server) -> None:
        """Fill the warehouses; CH adds its own tables to them."""
        self._go_tpc(database, "tpcc", ["prepare", "--no-check", "-T", "2"])
        if self.text("work") == "ch":
            self._go_tpc(database, "ch", ["prepare"])

    def warm_up(self, database: Server, seconds: float) -> None:
        """Run the measured work, unmeasured."""
        self._work(database, seconds)

    def run(self, database: Server, seconds: float) -> Load:
        """Count transactions of every kind; latencies are those of new orders."""
        text = self._work(database, seconds)
        found = list(_SUMMARY.finditer(text.partition("Finished")[2] or text))
        done = [one for one in found if not one["name"].endswith("_ERR") and not one["name"].startswith("Q")]
        if not done:
            raise TierwiseError(f"go-tpc told no rate: {text[-200:]}", "see what it says")
        main = next((one for one in done if one["name"] == _MAIN), done[0])
        latency = {f"{name}_us": 1000 * float(main[name]) for name in ("p50", "p95", "p99")}
        elapsed_s = max(float(one["takes"]) for one in done)
        return Load(elapsed_s, sum(int(one["count"]) for one in done), latency)

    def _work(self, database: Server, seconds: float) -> str:
        threads = ["-T", str(self.clients), "--time", f"{max(1, round(seconds))}s"]
        return self._go_tpc(database, self.text("work"), ["run", *threads])

    def _go_tpc(self, database: Server, name: str, action: Sequence[str]) -> str:
        program = _program()
        if program is None:
            raise TierwiseError("go-tpc is gone", self.package)
        work = [name, "--warehouses", self.text("scale")]
        return command("go-tpc", [program, *work, *_connection(database), *action], database.home)


def _program() -> Path | None:
    own = folder() / "go-tpc"
    return own if own.exists() else find_program("go-tpc")


@cache
def _install(go: Path) -> str | None:
    """Install the program; return the reason of a failure."""
    folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    env = {**os.environ, "GOBIN": str(folder()), "GOFLAGS": "-mod=mod"}
    try:
        done = subprocess.run(
            [go, "install", MODULE], env=env, capture_output=True, text=True, check=False, timeout=900
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"go install {MODULE}: {error}"
    return None if done.returncode == 0 else "go-tpc is not installed, and go install cannot fetch it here"


def _connection(database: Server) -> list[str]:
    """Connection over loopback TCP with a password, since the program supports no Unix sockets."""
    password = secrets.token_hex(8)
    user = database.open_to_loopback(password)
    login = ["-H", "127.0.0.1", "-P", str(database.port), "-U", user, "-p", password, "-D", DATABASE]
    if isinstance(database, MariadbServer):
        return [*login, "-d", "mysql"]
    return [*login, "-d", "postgres", "--conn-params", "sslmode=disable"]
