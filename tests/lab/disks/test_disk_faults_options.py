"""The faults of an emulated disk on the command line, and what is refused."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.disk_files import error_of, read_sector
from support.disk_traces import NAME, traces
from tierwise.cli import app
from tierwise.device_models import profiles
from tierwise.host.disk.disk import EmulatedDisk, Partition
from tierwise.model.errors import TierwiseError

MIB = 1 << 20
VOLATILE = "hdd-7k2-sata-2009"


@pytest.fixture
def mount_dir(tmp_path: Path) -> Path:
    return tmp_path / "mount"


def test_bad_arguments(mount_dir: Path) -> None:
    parts = [Partition("log", 64 * MIB), Partition("data", 64 * MIB)]
    with EmulatedDisk.up(NAME, profiles.load_profile("ram"), parts, mount_dir) as disk:
        refuse_all(disk)


def refuse_all(disk: EmulatedDisk) -> None:
    calls: list[tuple[Callable[[], None], str]] = [
        (lambda: disk.slow(0.5, 1), "factor of 0.5"),
        (lambda: disk.slow(2, float("nan")), "slow for nan s"),
        (lambda: disk.fail(after_s=-1), "after -1 s"),
        (lambda: disk.fail(after_requests=-1), "after -1 requests"),
        (lambda: disk.fail(after_s=1, after_requests=1), "not both"),
        (lambda: disk.make_unreadable(5, 4), "sectors 5-4"),
        (lambda: disk.make_unreadable(0, 131_072, "log"), "use 0-131071"),
        (lambda: disk.make_unreadable(0, 1, "swap"), "no partition 'swap': use log, data"),
    ]
    for call, named in calls:
        with pytest.raises(TierwiseError, match=named):
            call()
    assert error_of(lambda: read_sector(disk, "log", 0)) is None


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["disk", *arguments])


def test_command_line(mount_dir: Path) -> None:
    def succeed(*arguments: str) -> str:
        result = run(*arguments)
        assert result.exit_code == 0, result
        return result.output

    where = ["--size", "64M", "--mount", str(mount_dir)]
    succeed("up", NAME, "--profile", VOLATILE, *where, "--lies", "--unreadable", "90000-90007")
    try:
        disk = EmulatedDisk.find(NAME)
        time.sleep(2.1)
        (mount_dir / "file").write_bytes(b"x" * 10_000)
        os.sync()
        assert json.loads(succeed("cut", NAME, "--format", "json"))["lost_sectors"] > 20
        assert not (mount_dir / "file").exists()
        assert "sectors: " in succeed("cut", NAME, "--keep-random", "--seed", "7")
        assert error_of(lambda: read_sector(disk, "disk", 90_000)) == errno.EIO
        succeed("unreadable", NAME, "--sectors", "8-15")
        succeed("slow", NAME, "--factor", "2", "--duration", "1s")
        assert error_of(lambda: read_sector(disk, "disk", 8)) == errno.EIO
        succeed("fail", NAME)
        assert error_of(lambda: read_sector(disk, "disk", 1024)) == errno.EIO
    finally:
        succeed("down", NAME)
    assert traces(NAME, mount_dir) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fail", "nothing"], "no disk 'nothing'"),
        (["fail", "nothing", "--after", "soon"], "--after 'soon'"),
        (["unreadable", "nothing", "--sectors", "9-3"], "--sectors '9-3'"),
        (["up", "NAME", "--lies"], "no volatile write cache"),
        (["up", "NAME", "--precondition", "worn"], "'worn'"),
        (["up", "NAME", "--fail-after", "3 parsecs"], "--fail-after '3 parsecs'"),
        (["up", "NAME", "--unreadable", "0-131072"], "use 0-131071"),
        (["up", "NAME", "--slow-factor", "0"], "factor of 0"),
    ],
    ids=str,
)
def test_bad_options(mount_dir: Path, arguments: list[str], named: str) -> None:
    settings = ["--profile", "ram", "--size", "64M", "--mount", str(mount_dir)]
    named_so = [NAME if argument == "NAME" else argument for argument in arguments]
    result = run(*named_so, *(settings if arguments[0] == "up" else []))
    # The command line's main function prints such an error as one line.
    assert isinstance(result.exception, TierwiseError), result
    assert named in str(result.exception) and "\n" not in str(result.exception)
    assert traces(NAME, mount_dir) == []
