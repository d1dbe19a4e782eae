"""pgbench of PostgreSQL: TPC-B, its simpler forms, or a custom script."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import ClassVar

from tierwise.host.users import ids
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import new_folder
from tierwise.validation.clients import percentiles
from tierwise.validation.clients.base import Client, Load, command
from tierwise.validation.servers.base import CLIENT, DATABASE
from tierwise.validation.servers.postgres import PostgresServer

_SAMPLED = 0.1
"""Share of the transactions whose latency is logged."""
_TRANSACTIONS = re.compile(r"number of transactions actually processed: (\d+)")
_RATE = re.compile(r"tps = ([\d.]+)")
_SCRIPT = """\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, :scale)
BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid FOR UPDATE;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :bid, :aid, 1, now());
SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 100;
END;
"""


class Pgbench(Client[PostgresServer]):
    """``mode`` is ``tpcb``, ``simple`` (-N), ``select`` (-S) or ``script``; ``protocol`` is pgbench's."""

    family = "pgbench"
    program = "pgbench"
    package = "Debian: postgresql-15"
    defaults: ClassVar = {"mode": "tpcb", "scale": 20, "protocol": "prepared"}

    def prepare(self, database: PostgresServer) -> None:
        """``pgbench -i``."""
        command("pgbench", [*self._base(database), "-i", "-q", "-s", self.text("scale"), DATABASE], database)

    def warm_up(self, database: PostgresServer, seconds: float) -> None:
        """Run the measured work, unmeasured."""
        self._work(database, seconds, [])

    def run(self, database: PostgresServer, seconds: float) -> Load:
        """Count transactions, and sample their latencies."""
        logs = database.home / "latencies"
        shutil.rmtree(logs, ignore_errors=True)
        new_folder(logs, owner=ids(database.user), in_foreign=True)
        sampling = ["-l", f"--sampling-rate={_SAMPLED}", f"--log-prefix={logs}/log"]
        text = self._work(database, seconds, sampling)
        done, rate = _TRANSACTIONS.search(text), _RATE.search(text)
        if done is None or rate is None:
            raise TierwiseError("pgbench told no rate", "see that it is of PostgreSQL 14 or later")
        transactions = int(done[1])
        return Load(transactions / float(rate[1]), transactions, percentiles.of_samples(_latencies(logs)))

    def _work(self, database: PostgresServer, seconds: float, more: list[str]) -> str:
        argv = [*self._base(database), "-n", "-M", self.text("protocol"), "-c", str(self.clients)]
        argv += ["-j", str(min(2, self.clients)), "-T", str(max(1, round(seconds)))]
        argv += [*self._mode(database), *more, DATABASE]
        return command("pgbench", argv, database)

    def _mode(self, database: PostgresServer) -> list[str]:
        mode = self.text("mode")
        if mode == "script":
            script = database.input_file("script.sql", _SCRIPT)
            return ["-f", str(script), "-D", f"scale={self.text('scale')}"]
        flags: dict[str, list[str]] = {"tpcb": [], "simple": ["-N"], "select": ["-S"]}
        if mode not in flags:
            raise TierwiseError(f"pgbench has no mode {mode!r}", "use tpcb, simple, select or script")
        return flags[mode]

    def _base(self, database: PostgresServer) -> list[str]:
        program = str(database.programs / "pgbench")
        return [program, "-h", str(database.home), "-p", str(database.port), "-U", CLIENT]


def _latencies(folder: Path) -> list[float]:
    """Latencies in µs, from pgbench's log: client, number, time, …"""
    return [
        float(line.split(" ", 3)[2])
        for file in folder.iterdir()
        for line in file.read_text("ascii").splitlines()
    ]
