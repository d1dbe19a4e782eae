"""What an engine or a workload refuses: said before anything is made, by a dry run as by a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.engine_cases.mariadb import CASES
from tierwise.cli import app
from tierwise.model.errors import TierwiseError

REFUSED = {
    "postgres io_method": ("postgres", "io_method=io_uring", "Available values: sync, worker"),
    "postgres max_wal_size": ("postgres", "max_wal_size=-5", "outside the valid range"),
    "mariadb": ("mariadb", "innodb_flush_method=fast", "setting value 'fast'"),
    "sqlite": ("sqlite", "synchronous=maybe", "give one of off, normal, full, extra"),
    "rocksdb": ("rocksdb", "write_buffer_size=x", "setting write_buffer_size: 'x' is no whole number"),
    "duckdb": ("duckdb", "threads=none", "Could not convert string 'none'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_value_is_refused_with_the_engines_own_words(case: str, tmp_path: Path) -> None:
    engine, setting, expected = REFUSED[case]
    if engine == "mariadb" and (reason := CASES[0].missing()):
        pytest.skip(reason)
    study = {"duckdb": "dss-queries"}.get(engine, "crud")
    out = tmp_path / "results"
    asked = ["study", "run", study, "--engine", engine, "--set", f"settings.{engine}.{setting}"]
    for more in (["--dry-run"], ["--quick", "--own-storage", str(tmp_path), "--output", str(out)]):
        ended = CliRunner().invoke(app, [*asked, *more])
        printed = " ".join(str(ended.exception or ended.output).split())
        assert expected in printed and setting.partition("=")[0] in printed, printed
        assert not out.exists()


STUDY = """
name = "mine"
question = "Is it checked?"
engines = ["sqlite"]
workload = "tpcb"
transactions = 10
repeats = 1
baseline = "a"
[placements.a]
default = "ram"
[devices]
ram = { profile = "ram" }
"""
WRONG = {
    "workload": ('workload = "tpcb"', 'workload = "tpcd"', "unknown workload 'tpcd'"),
    "memory": ("repeats = 1", 'repeats = 1\nmemory = "10"', "memory: 10 bytes"),
    "later point": (
        "[devices]",
        "[sweep.constants]\nbranches = [1]\nnone = [1]\n[devices]",
        "constants.none",
    ),
    "later variant": (
        "[devices]",
        '[sweep]\nvariant = ["x", "y"]\n[variants.x]\n[variants.y.settings.sqlite]\n'
        'synchronous = "maybe"\n[devices]',
        "setting synchronous cannot be 'maybe'",
    ),
    "clients": ("repeats = 1", f"repeats = 1\nclients = {10**22}", "clients: Input should be less"),
    "transactions": ("transactions = 10", f"transactions = {10**22}", "transactions: Input should be less"),
    "seconds": ("transactions = 10", "seconds = inf", "seconds: Input should be a finite number"),
    "size": ("repeats = 1", 'repeats = 1\nmemory = "9999999999T"', "is more than 1,048,576T"),
    "runs": ("repeats = 1", f"repeats = {10**6}", "repeats: Input should be less"),
    "no end": ("transactions = 10", "", "workload tpcb is a mix of transactions, which has no end"),
    "laps with an end": ('workload = "tpcb"', 'workload = "crud"', "workload crud has laps"),
}
WRONG_DEVICES = {
    "no directory": ('profile = "ram"', 'path = "/no/such"', "devices.ram.path: /no/such is not a writable"),
    "no member": (
        'profile = "ram"',
        'profile = "ram", failed_member = true',
        "ram has no member that could fail",
    ),
    "no cache": ('profile = "ram"', 'profile = "ram", lies_about_flush = true', "no volatile write cache"),
    "small": ("[devices]", '[sizes]\ndata = "1K"\n[devices]', "1024 bytes are too few for ext4"),
    "large": ("[devices]", '[sizes]\ndata = "900T"\n[devices]', "do not fit on ram"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_study_is_checked_before_its_first_run(case: str, tmp_path: Path) -> None:
    text, wrong, expected = WRONG[case]
    assert text in STUDY
    file, out = tmp_path / "study.toml", tmp_path / "results"
    file.write_text(STUDY.replace(text, wrong))
    for more in (["--dry-run"], ["--own-storage", str(tmp_path), "--output", str(out)]):
        ended = CliRunner().invoke(app, ["study", "run", str(file), *more])
        assert expected in str(ended.exception), ended.output
        assert not out.exists()


@pytest.mark.parametrize("case", WRONG_DEVICES)
def test_devices_are_checked_before_the_first_run(case: str, tmp_path: Path) -> None:
    text, wrong, expected = WRONG_DEVICES[case]
    file, out = tmp_path / "study.toml", tmp_path / "results"
    file.write_text(STUDY.replace(text, wrong))
    for more in (["--dry-run"], ["--output", str(out)]):
        ended = CliRunner().invoke(app, ["study", "run", str(file), *more])
        assert expected in str(ended.exception), ended.output
        assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["commit-rate", "--set", "cuts=3"], "study commit-rate: seconds: devices fail while clients commit"),
        (["commit-rate", "--engine", "file"], 'patterns run on the engine "file"'),
        (["device-benchmark", "--engine", "sqlite"], 'patterns run on the engine "file"'),
        (["bahrain", "--duration", "3s"], "workload bahrain has laps"),
        (["bahrain", "--clients", "8"], "clients: workload bahrain has laps"),
        (["redo-placement", "--set", "cap_s=9"], "cap_s: workload order_entry is a mix"),
        (["device-benchmark", "--clients", "8"], "clients: a study of devices or of faults"),
    ],
)
def test_options_are_checked_as_fields_are(arguments: list[str], expected: str) -> None:
    ended = CliRunner().invoke(app, ["study", "run", *arguments, "--dry-run"])
    assert expected in str(ended.exception), ended.output


@pytest.mark.parametrize("repeats", [100_000, 10**12])
def test_options_do_not_make_more_runs_than_a_study_may_have(repeats: int) -> None:
    ended = CliRunner().invoke(app, ["study", "run", "crud", "--repeats", str(repeats), "--dry-run"])
    assert isinstance(ended.exception, TierwiseError)
