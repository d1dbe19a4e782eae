"""Bar of the decision-support data: at scale factor 1 the 22 answers are the published ones.

``python benchmarks/dss_answers.py``. Makes the tables (about a gigabyte of text, a table at a time), loads
them into DuckDB without indexes and asks the queries with the validation parameters. TPC-H-derived; the times
printed compare to no published TPC result. Exit status 1 if an answer differs.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import dss_expected as answers
import duckdb

from tierwise import _core
from tierwise.lab.workloads import Workload
from tierwise.lab.workloads.dss.query_parameters import QUERIES
from tierwise.lab.workloads.program import Program

SCALE_FACTOR = 1.0


def main() -> int:
    """Load, ask, judge."""
    constants = {"scale_factor": SCALE_FACTOR, "seed": 0, "queries": 1, "power": 0}
    program = Workload.load("dss").resolve(1, constants, "duckdb")
    with tempfile.TemporaryDirectory(prefix="tierwise-dss-") as directory:
        database = duckdb.connect(str(Path(directory) / "tables.duckdb"))
        began_s = time.perf_counter()
        rows = _load(database, program, Path(directory))
        print(f"{rows:,} rows loaded in {time.perf_counter() - began_s:.1f} s")
        problems = _ask(database, program)
        database.close()
    for problem in problems:
        print(problem)
    print(f"{len(QUERIES)} answers, {len(problems)} differences from the published ones")
    return 1 if problems else 0


def _load(database: duckdb.DuckDBPyConnection, program: Program, directory: Path) -> int:
    for _, statement in program.schema:
        database.execute(statement)
    rows = 0
    for table in json.loads(program.json)["tables"]:
        file = directory / table["name"]
        rows += _core.write_tpch(table["source"]["table"], SCALE_FACTOR, 1, 1, str(file))
        database.execute(f"COPY {table['name']} FROM '{file}' (DELIMITER '|', HEADER false, QUOTE '')")
        file.unlink()
    return rows


def _ask(database: duckdb.DuckDBPyConnection, program: Program) -> list[str]:
    statements = {
        transaction["name"]: transaction["steps"][0]["sql"][0]
        for transaction in json.loads(program.json)["transactions"]
    }
    problems = []
    for query in QUERIES:
        began_s = time.perf_counter()
        rows = database.execute(statements[f"q{query}"]).fetchall()
        print(f"  q{query:<2} {len(rows):6} rows {(time.perf_counter() - began_s) * 1e3:8.0f} ms", flush=True)
        problems += answers.problems(query, rows)
    return problems


if __name__ == "__main__":
    sys.exit(main())
