"""One small case of each client program of a validation that needs nothing fetched."""

from __future__ import annotations

from pathlib import Path

from tierwise.lab.validation.validation_spec import ValidationSpec, load_validation

HEAD = """
slot_s = 1
fewest_blocks = 2
most_blocks = 2
recorded_s = 2
warm_up_s = 1
[devices]
ram = "ram"
own = "own"
nvme = "ssd-nvme-dc"
[placements]
fast = { all = "nvme" }
log-apart = { log = "nvme", all = "ram" }
own = { all = "own" }
other = { all = "ram" }
[sizes]
log = "1G"
data = "512M"
temp = "64M"
[settings.postgres]
max_wal_size = "256MB"
[settings.mariadb]
innodb-log-file-size = "16M"
"""
CASES = {
    "pgbench": ("postgres", 'mode = "tpcb", scale = 1', "log-apart"),
    "sysbench": ("mariadb", 'script = "oltp_read_write", scale = 1', "log-apart"),
    "db_bench": (None, "scale = 10", "log-apart"),
    "sqlite-shell": (None, "scale = 1", "fast"),
    "postgres-jobs": ("postgres", 'job = "restore", scale = 1', "own"),
    "mariadb-jobs": ("mariadb", 'job = "load_data", scale = 1', "fast"),
}


def spec_of(directory: Path, client: str, *more: str) -> ValidationSpec:
    """A validation of one case, with more lines of it."""
    server, options, placement = CASES[client]
    lines = [
        f'client = "{client}"',
        f"options = {{ {options} }}",
        f'recorded = ["{placement}"]',
        'load = "mixed"',
        "duty = 0.6",
        *more,
    ]
    lines += [f'server = "{server}"'] if server else []
    file = directory / "cases.toml"
    file.write_text(HEAD + "[[cases]]\nclients = [2]\n" + "\n".join(lines) + "\n", "utf-8")
    return load_validation(file)
