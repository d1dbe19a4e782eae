"""db_bench of RocksDB."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from tierwise.host import programs
from tierwise.lab.validation.clients.validation_client import (
    ClientLoad,
    ValidationClient,
    wait_for_client_program,
)
from tierwise.lab.validation.servers.embedded_library import EmbeddedLibrary
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

_RESULT = re.compile(
    r"^\w+\s+:\s+([\d.]+) micros/op (\d+) ops/sec ([\d.]+) seconds (\d+) operations", re.MULTILINE
)
_PERCENTILES = re.compile(r"^Percentiles: P50: ([\d.]+) P75: [\d.]+ P99: ([\d.]+)", re.MULTILINE)


class DbBench(ValidationClient[EmbeddedLibrary]):
    """``benchmark`` is db_bench's; ``scale`` counts thousands of keys; ``sync`` 1 flushes each write."""

    family = "db_bench"
    engine = "rocksdb"
    program = "db_bench"
    package = "Debian: rocksdb-tools"
    defaults: ClassVar = {"benchmark": "overwrite", "scale": 1000, "sync": 1, "value": 400}
    of_data: ClassVar = ("scale", "value")

    def prepare(self, database: EmbeddedLibrary) -> None:
        """Write every key, in order."""
        self._bench(database, ["--benchmarks=fillseq", "--sync=0", "--threads=1"])

    def run(self, database: EmbeddedLibrary, seconds: float) -> ClientLoad:
        """Work for the time on as many threads as there are clients."""
        options = [f"--benchmarks={self.text('benchmark')}", "--use_existing_db=1", "--histogram=1"]
        options += [f"--sync={self.number('sync')}", f"--threads={self.clients}"]
        # By default it checks the clock once in 1,000 operations: too rarely when each waits for a disk.
        options += [f"--duration={max(1, round(seconds))}", "--ops_between_duration_checks=1"]
        text = self._bench(database, options)
        matches = list(_RESULT.finditer(text))
        if not matches:
            raise TierwiseError(f"db_bench told no rate: {text[-200:]}", "name one of its benchmarks")
        last, latency = matches[-1], list(_PERCENTILES.finditer(text))
        percentiles = {"p50_us": float(latency[-1][1]), "p99_us": float(latency[-1][2])} if latency else {}
        return ClientLoad(float(last[3]), int(last[4]), percentiles)

    def _bench(self, database: EmbeddedLibrary, options: list[str]) -> str:
        log = database.outer / "db_bench.out"
        sizes = [f"--num={1000 * self.number('scale')}", f"--value_size={self.number('value')}"]
        fixed = [
            "--compression_type=none",
            f"--seed={self.seed}",
            "--write_buffer_size=16777216",
            "--stats_interval_seconds=0",
        ]
        program = programs.program_path(self.program)
        argv: list[str | Path] = [program, f"--db={database.directory(Role.DATA)}"]
        if (logs := database.directory(Role.LOG)) != database.directory(Role.DATA):
            argv.append(f"--wal_dir={logs}")
        return wait_for_client_program(
            "db_bench", database.launch([*argv, *sizes, *fixed, *options], log), log
        )
