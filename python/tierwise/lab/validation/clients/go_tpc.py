"""go-tpc: TPC-C, and TPC-C with analytical queries beside it (CH), on PostgreSQL and on MariaDB."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from tierwise.host import programs
from tierwise.host.programs import FinishedProgram, PrivateDirectory
from tierwise.lab.engines.postgres.server import PORT
from tierwise.lab.validation.clients.validation_client import (
    ClientLoad,
    ValidationClient,
    caller_cache_directory,
    fetch_program,
    network_variables,
    run_client_program,
)
from tierwise.lab.validation.servers.case_database import CLIENT, DATABASE, CaseServer
from tierwise.lab.validation.servers.mariadb import DebianMariadb
from tierwise.model.errors import TierwiseError

VERSION = "v1.0.12"
MODULE = f"github.com/pingcap/go-tpc/cmd/go-tpc@{VERSION}"
_SUMMARY = re.compile(
    r"^\[Summary\] (?P<name>[A-Z_]+) - Takes\(s\): (?P<takes>[\d.]+), Count: (?P<count>\d+).*?"
    r"50th\(ms\): (?P<p50>[\d.]+).*?95th\(ms\): (?P<p95>[\d.]+), "
    r"(?:98th\(ms\): [\d.]+, )?99th\(ms\): (?P<p99>[\d.]+)",
    re.MULTILINE,
)
_MAIN = "NEW_ORDER"
"""The transaction whose latencies are reported: the one that TPC-C's rate counts."""
_FOLDER = "TIERWISE_GO_BIN"
_USER = "go_tpc"
_GO = {"CGO_ENABLED": "0", "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local"}
_ALSO_IN = Path("/usr/local/go/bin/go")


def go_tpc_folder() -> Path:
    """Where the program is installed: a private directory of the caller's cache."""
    own = os.environ.get(_FOLDER)
    return Path(own) if own else caller_cache_directory(f"go-tpc-{VERSION}")


class GoTpc(ValidationClient[CaseServer]):
    """``work`` is ``tpcc`` or ``ch``; ``scale`` counts warehouses."""

    family = "go-tpc"
    program = "go-tpc"
    package = f"Go: GOBIN={go_tpc_folder()} go install {MODULE}"
    servers = ("postgres", "mariadb")
    defaults: ClassVar = {"work": "tpcc", "scale": 2}
    of_data: ClassVar = ("work", "scale")  # CH adds tables
    choices: ClassVar = {"work": ["tpcc", "ch"]}

    def missing(self) -> str | None:
        """Install the program if Go is available; else return how to install it."""
        if _program().exists():
            return None
        go = programs.find_program("go") or _ALSO_IN
        if not go.exists():
            return f"go-tpc is not installed ({self.package}; Debian: golang-go)"
        return _install(go)

    def prepare(self, database: CaseServer) -> None:
        """Fill the warehouses; CH adds its own tables to them."""
        self._go_tpc(database, "tpcc", ["prepare", "--no-check", "-T", "2"])
        if self.text("work") == "ch":
            self._go_tpc(database, "ch", ["prepare"])

    def warm_up(self, database: CaseServer, seconds: float) -> None:
        """Run the measured work, unmeasured."""
        self._work(database, seconds)

    def run(self, database: CaseServer, seconds: float) -> ClientLoad:
        """Count transactions of every kind; latencies are those of new orders."""
        text = self._work(database, seconds)
        matches = list(_SUMMARY.finditer(text.partition("Finished")[2] or text))
        done = [
            match
            for match in matches
            if not match["name"].endswith("_ERR") and not match["name"].startswith("Q")
        ]
        if not done:
            raise TierwiseError(f"go-tpc told no rate: {text[-200:]}", "see what it says")
        main = next((match for match in done if match["name"] == _MAIN), done[0])
        latency = {f"{name}_us": 1000 * float(main[name]) for name in ("p50", "p95", "p99")}
        elapsed_s = max(float(match["takes"]) for match in done)
        return ClientLoad(elapsed_s, sum(int(match["count"]) for match in done), latency)

    def _work(self, database: CaseServer, seconds: float) -> str:
        threads = ["-T", str(self.clients), "--time", f"{max(1, round(seconds))}s"]
        return self._go_tpc(database, self.text("work"), ["run", *threads])

    def _go_tpc(self, database: CaseServer, name: str, action: Sequence[str]) -> str:
        work = [name, "--warehouses", self.text("scale")]
        argv: list[str | Path] = [database.reachable(_program()), *work, *_connection(database), *action]
        return run_client_program("go-tpc", argv, database)


@cache
def _install(go: Path) -> str | None:
    """Compile the program; give the reason of a failure.

    Go compares the module, and all that it needs, with its public database of checksums.
    """

    def install(home: PrivateDirectory) -> FinishedProgram:
        variables = {**network_variables(), **_GO, "GOBIN": str(home.own)}
        return programs.run("go", [go, "install", MODULE], home=home, variables=variables, timeout_s=900)

    failure = fetch_program(_program(), "go-tpc", install)
    return failure and f"go-tpc is not installed, and go install cannot fetch it here: {failure}"


def _program() -> Path:
    return go_tpc_folder() / "go-tpc"


def _connection(database: CaseServer) -> list[str]:
    """Options for connections over the server's socket, so that no password is on a command line.

    The program has none for a socket, but writes host, port and parameters into a DSN, whose syntax has. The
    socket is in a directory of the database's user, and PostgreSQL trusts whoever reaches it. The driver of
    MariaDB takes what precedes the socket in the DSN as the password of an account without access elsewhere.
    """
    if isinstance(database, DebianMariadb):
        database.make_account(_USER, "@tcp(x)")
        socket = database.outer / "socket"
        with suppress(FileExistsError):
            socket.with_name(f"{socket.name}:{PORT}").symlink_to(database.socket)
        return ["-d", "mysql", "-H", f"x)@unix({socket}", *_login(_USER)]
    # The driver takes the last host in alphabetical order.
    parameters = f"sslmode=disable&host={quote(str(database.home), safe='')}"
    return ["-d", "postgres", "-H", ".", "--conn-params", parameters, *_login(CLIENT)]


def _login(user: str) -> list[str]:
    return ["-P", str(PORT), "-U", user, "-D", DATABASE]
