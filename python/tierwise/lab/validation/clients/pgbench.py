"""pgbench of PostgreSQL: TPC-B, its simpler forms, or a custom script."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tierwise.host.users import account_ids
from tierwise.lab.validation.clients.validation_client import (
    ClientLoad,
    Option,
    ValidationClient,
    latency_percentiles,
    run_client_program,
)
from tierwise.lab.validation.servers.case_database import DATABASE
from tierwise.lab.validation.servers.postgres import DebianPostgres
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import make_new_folder

_SAMPLED = 0.1
"""Share of the transactions whose latency is logged."""
_TRANSACTIONS = re.compile(r"number of transactions actually processed: (\d+)")
_RATE = re.compile(r"tps = ([\d.]+)")
_TABLES = """\
CREATE TABLE counters (id int PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO counters SELECT g, 0 FROM generate_series(1, 10) g;
CREATE TABLE jobs (id int PRIMARY KEY, taken int NOT NULL, payload text NOT NULL) WITH (fillfactor = 70);
INSERT INTO jobs SELECT g, 0, repeat('x', 100) FROM generate_series(1, 50000) g;
VACUUM ANALYZE counters; VACUUM ANALYZE jobs;
"""
"""What the scripts need beside pgbench's own tables."""
_ACCOUNT = "\\set aid random(1, 100000 * :scale)\n"
_SCRIPTS = {
    "script": f"""\
{_ACCOUNT}BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid FOR UPDATE;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 1, now());
SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 100;
END;
""",
    "hot": """\
\\set id random(1, 10)
UPDATE counters SET n = n + 1 WHERE id = :id;
""",
    "queue": """\
\\set id random(1, 49900)
BEGIN;
SELECT id AS job FROM jobs WHERE id >= :id ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED \\gset
UPDATE jobs SET taken = taken + 1 WHERE id = :job;
END;
""",
    "batch": f"""\
{_ACCOUNT}BEGIN;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
    SELECT 1, 1, g, 1, now() FROM generate_series(1, 200) g;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid BETWEEN :aid AND :aid + 50;
END;
""",
    "update": f"""\
{_ACCOUNT}BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 1, now());
END;
""",
    "favourites": """\
\\set aid random_zipfian(1, 100000 * :scale, 1.05)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
""",
    "lookup": f"""\
{_ACCOUNT}SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
""",
}
_FLAGS: dict[str, list[str]] = {"tpcb": [], "simple": ["-N"], "select": ["-S"]}


class Pgbench(ValidationClient[DebianPostgres]):
    """``mode`` is ``tpcb``, ``simple`` (-N), ``select`` (-S) or a script's; ``protocol`` is pgbench's.

    ``rate``, if not 0, is that of arrivals a second (-R). A script sleeps ``think_ms`` after a transaction.
    """

    family = "pgbench"
    program = "pgbench"
    package = "Debian: postgresql-15"
    servers = ("postgres",)
    defaults: ClassVar = {"mode": "tpcb", "scale": 20, "protocol": "prepared", "rate": 0, "think_ms": 0}
    choices: ClassVar = {"mode": [*_FLAGS, *_SCRIPTS], "protocol": ["simple", "extended", "prepared"]}

    def __init__(self, options: Mapping[str, Option], clients: int) -> None:
        """Check the options; only a script can sleep."""
        super().__init__(options, clients)
        if self.number("think_ms") and self.text("mode") not in _SCRIPTS:
            raise TierwiseError(
                f"pgbench: mode {self.text('mode')} has no think time",
                f"leave think_ms out, or use {', '.join(_SCRIPTS)}",
            )

    def prepare(self, database: DebianPostgres) -> None:
        """``pgbench -i``, and the scripts' tables."""
        run_client_program(
            "pgbench", [*database.tool("pgbench"), "-i", "-q", "-s", self.text("scale"), DATABASE], database
        )
        tables = database.input_file("tables.sql", _TABLES)
        psql = [*database.tool("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", tables, DATABASE]
        run_client_program("psql", psql, database)

    def warm_up(self, database: DebianPostgres, seconds: float) -> None:
        """Run the measured work, unmeasured."""
        self._work(database, seconds, [])

    def run(self, database: DebianPostgres, seconds: float) -> ClientLoad:
        """Count transactions, and sample their latencies."""
        logs = database.home / "latencies"
        shutil.rmtree(logs, ignore_errors=True)
        make_new_folder(logs, owner=account_ids(database.user), in_foreign=True)
        sampling = ["-l", f"--sampling-rate={_SAMPLED}", f"--log-prefix={logs}/log"]
        text = self._work(database, seconds, sampling)
        done, rate = _TRANSACTIONS.search(text), _RATE.search(text)
        if done is None or rate is None:
            raise TierwiseError("pgbench told no rate", "see that it is of PostgreSQL 14 or later")
        transactions = int(done[1])
        # pgbench counts what a script sleeps, and how late a scheduled transaction began.
        waits = self.number("rate") or self.number("think_ms")
        latency_us = {} if waits else latency_percentiles(Counter(_latencies(logs)))
        return ClientLoad(transactions / float(rate[1]), transactions, latency_us)

    def _work(self, database: DebianPostgres, seconds: float, more: list[str]) -> str:
        argv = [*database.tool("pgbench"), "-n", "-M", self.text("protocol"), "-c", str(self.clients)]
        argv += ["-j", str(min(2, self.clients)), "-T", str(max(1, round(seconds)))]
        argv += [f"--random-seed={self.seed}"]
        argv += ["-R", self.text("rate")] if self.number("rate") else []
        argv += [*self._mode(database), *more, DATABASE]
        return run_client_program("pgbench", argv, database)

    def _mode(self, database: DebianPostgres) -> list[str]:
        mode, think_ms = self.text("mode"), self.number("think_ms")
        if mode in _FLAGS:
            return _FLAGS[mode]
        text = _SCRIPTS[mode] + (f"\\sleep {think_ms} ms\n" if think_ms else "")
        return ["-f", str(database.input_file("script.sql", text)), "-D", f"scale={self.text('scale')}"]


def _latencies(folder: Path) -> list[float]:
    """Latencies in µs, from pgbench's log: client, number, time, …"""
    return [
        float(line.split(" ", 3)[2])
        for file in folder.iterdir()
        for line in file.read_text("ascii").splitlines()
    ]
