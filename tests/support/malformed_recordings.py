"""Malformed recordings, observations, days, results and profiles, as a stranger may send them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from support.malformed_kinds import (
    EXAMPLE,
    SHIPPED,
    Kind,
    as_json,
    command,
    copied,
    mutated,
    replace_by_no_file,
    with_other_values,
)
from support.malformed_tables import lying, vouched
from support.recording_factory import COLUMNS, ONE_COMMIT, write_recording
from support.results_factory import INFO, Make, run
from tierwise.device_models import profiles

_TABLES = sorted(ONE_COMMIT)
_CELLS: dict[str, list[Any]] = {
    "BIGINT": [0, 1, 2, 10**6, 10**10, 2**31, 2**46, 2**62 - 1, 2**63 - 1, -1, None],
    "BOOLEAN": [True, False, None],
    "VARCHAR": ["", "\x1b[31m", "x" * 5000, "cpu", "blocked", "sync", "log", "session", "=1", None],
}


@cache
def _small() -> dict[str, bytes]:
    """The files of a recording of ten milliseconds."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = write_recording(Path(folder) / "r")
        return {file.name: file.read_bytes() for file in path.iterdir()}


def small_recording(folder: Path) -> Path:
    """A sound recording of ten milliseconds."""
    folder.mkdir(parents=True)
    for name, content in _small().items():
        (folder / name).write_bytes(content)
    return folder


def any_command(recording: Path, draw: random.Random) -> Callable[[], object]:
    """A command that reads a recording, an observation or a day."""
    out = recording.parent / "out"
    asked: list[list[str | Path]] = [
        ["profile", recording],
        ["profile", recording, "--no-savings", "--format", "md"],
        ["predict", recording, "--place", "log=nvme-dc", "--seeds", "2"],
        ["predict", recording, "--place", "log=ram", "--clients", "2", "--format", "csv"],
        ["predict", f"a={recording}", f"b={EXAMPLE}", "--place", "a.log=nvme-dc", "--seeds", "2"],
        ["recording", "show", recording],
        ["recording", "show", recording, "--format", "csv"],
        ["recording", "list", recording.parent],
        ["recording", "redact", recording, "-o", out],
        ["advise", recording, "--devices", "nvme-dc", "--seeds", "2"],
        *(
            ["advise", recording, "--devices", "nvme-dc", "--seeds", "2", "--emit", emit]
            for emit in ("cnpg", "terraform", "ansible", "fio")
        ),
        ["profile", recording, "--format", "openmetrics"],
        ["recording", "export", recording, "--perfetto", out / "trace.json"],
        ["fleet", "advise", recording, "--devices", "nvme-dc", "--seeds", "2", "-o", out / "fleet.html"],
        ["fleet", "advise", f"{recording.parent}/*", "--devices", "nvme-dc", "--seeds", "2"],
        ["verify", _forecast(recording.parent), recording, "--seeds", "2"],
    ]
    return command(*draw.choice(asked))


@cache
def _printed_forecast() -> bytes:
    from typer.testing import CliRunner

    from tierwise.cli import app

    printed = CliRunner().invoke(app, ["advise", str(EXAMPLE), "--devices", "nvme-dc", "--format", "json"])
    return printed.stdout.encode()


def printed_forecast() -> bytes:
    """What ``advise`` prints as JSON."""
    return _printed_forecast()


def _forecast(folder: Path) -> Path:
    file = folder / "forecast.json"
    file.write_bytes(_printed_forecast())
    return file


def _bytes(folder: Path, draw: random.Random) -> Callable[[], object]:
    """Changed bytes; ``about.json`` often vouches for them."""
    source = draw.random() < 0.1
    path = copied(EXAMPLE, folder / "r") if source else small_recording(folder / "r")
    name = draw.choice([*(f"{table}.parquet" for table in _TABLES), "about.json"])
    content = mutated((path / name).read_bytes(), draw)
    (path / name).write_bytes(content)
    if name != "about.json" and draw.random() < 0.75:
        _vouch(path, name.removesuffix(".parquet"), content, {})
    return any_command(path, draw)


def _vouch(path: Path, table: str, content: bytes, declared: dict[str, int]) -> None:
    about = json.loads((path / "about.json").read_bytes())
    about["tables"][table] |= vouched(content, declared)
    (path / "about.json").write_text(json.dumps(about))


def _lies(folder: Path, draw: random.Random) -> Callable[[], object]:
    """Tables that lie about themselves."""
    path = small_recording(folder / "r")
    for table in draw.sample(_TABLES, draw.choice([1, 1, 1, 2])):
        content, declared = lying(table, draw)
        (path / f"{table}.parquet").write_bytes(content)
        _vouch(path, table, content, declared)
    return any_command(path, draw)


def _about(folder: Path, draw: random.Random) -> Callable[[], object]:
    """Other values in ``about.json``."""
    path = small_recording(folder / "r")
    about = json.loads((path / "about.json").read_bytes())
    (path / "about.json").write_bytes(as_json(with_other_values(about, draw), draw))
    return any_command(path, draw)


def _rows(folder: Path, draw: random.Random) -> Callable[[], object]:
    """Sound tables with rows that no recorder writes."""
    from support.malformed_tables import honest
    from support.parquet_forge import file

    path = small_recording(folder / "r")
    table = draw.choice(_TABLES)
    rows = [list(row) for row in ONE_COMMIT[table]] * draw.choice([1, 1, 2, 200])
    kinds = [column.split()[1] for column in COLUMNS[table].split(", ")]
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(kinds))
        draw.choice(rows)[at] = draw.choice(_CELLS[kinds[at]])
    content = file(honest(table, [tuple(row) for row in rows]), len(rows))
    (path / f"{table}.parquet").write_bytes(content)
    _vouch(path, table, content, {"rows": len(rows)})
    return any_command(path, draw)


def _no_files(folder: Path, draw: random.Random) -> Callable[[], object]:
    """Pipes, sockets, directories, links and holes in place of files."""
    path = small_recording(folder / "r")
    for name in draw.sample(sorted(path.name for path in path.iterdir()), draw.choice([1, 1, 2])):
        replace_by_no_file(path / name, draw)
    if draw.random() < 0.2:
        replace_by_no_file(path / draw.choice(["observation.json", "other", "\x1b[31m"]), draw)
    return any_command(path, draw)


@cache
def _observed() -> bytes:
    """An observation of a minute."""
    waits = [
        {"event": "IO:WalSync", "wait_class": "log_sync", "role": "log", "sessions": 3.0},
        {"event": "active", "wait_class": "cpu", "role": None, "sessions": 0.5},
        {"event": "IO:DataFileRead", "wait_class": "data_read", "role": "data", "sessions": 0.7},
    ]
    observed = {
        "schema": "observation", "schema_version": 1, "started_at": "2026-11-25T10:00:00+00:00",
        "tierwise": "0.1.0", "engine": "postgres", "engine_version": "18.6", "duration_s": 60.0,
        "ticks": 600, "rate_hz": 10.0, "cores": 2, "running": 0.5, "counted_s": 60.0, "page_bytes": 8192,
        "waits": waits, "counts": {"transactions": 60000, "log_syncs": 60000, "data_reads": 40000},
        "sizes": {"data": 1 << 30, "log": 1 << 28}, "devices": {"log": "hdd-7k2", "data": "hdd-7k2"},
        "limits": ["no root"],
    }  # fmt: skip
    return json.dumps(observed).encode()


def _observation(folder: Path, draw: random.Random) -> Callable[[], object]:
    path = folder / "r"
    path.mkdir()
    file = path / "observation.json"
    match draw.randrange(4):
        case 0:
            file.write_bytes(mutated(_observed(), draw))
        case 1:
            replace_by_no_file(file, draw)
        case _:
            file.write_bytes(as_json(with_other_values(json.loads(_observed()), draw), draw))
    return any_command(path, draw)


def _day(folder: Path, draw: random.Random) -> Callable[[], object]:
    path = folder / "day"
    for number in range(draw.randint(1, 4)):
        recording = small_recording(path / f"{number}")
        about = json.loads((recording / "about.json").read_bytes())
        about["started_at"] = f"2026-11-21T{10 + number}:00:00Z"
        match draw.randrange(5):
            case 0:
                about = with_other_values(about, draw)
            case 1:
                replace_by_no_file(recording / draw.choice(["about.json", "states.parquet"]), draw)
                continue
            case 2:
                (path / f"link{number}").symlink_to(EXAMPLE)
        (recording / "about.json").write_bytes(as_json(about, draw))
    return any_command(path, draw)


def _results(folder: Path, draw: random.Random) -> Callable[[], object]:
    path = folder / "study" / "once"
    path.mkdir(parents=True)
    lines = [run(Make(order=number)).model_dump(mode="json") for number in range(3)]
    info = INFO.model_dump(mode="json")
    where = draw.randrange(4)
    if where == 0:
        info = with_other_values(info, draw)
    elif where < 3:
        number = draw.randrange(3)
        lines[number] = with_other_values(lines[number], draw)
    text = b"".join(as_json(line, draw) + b"\n" for line in lines)
    (path / "results.jsonl").write_bytes(mutated(text, draw) if draw.random() < 0.2 else text)
    (path / "study.json").write_bytes(as_json(info, draw))
    if where == 3:
        replace_by_no_file(
            path / draw.choice(["results.jsonl", "study.json", "report.html", "results.draft"]), draw
        )
    target: Any = draw.choice(["once", "once", "..", "/proc", "latest", "missing", "once/../.."])
    (path.parent / "latest").symlink_to(target)
    return command(
        *draw.choice(
            [
                ["report", path], ["report", path.parent], ["report", folder],
                ["report", path, "--format", "csv"], ["compare", path, path],
                ["compare", path.parent, path / "results.jsonl", "--format", "csv"],
                ["compare", path, path, "-o", folder / "out.html"],
            ]
        )
    )  # fmt: skip


def _device(folder: Path, draw: random.Random) -> Callable[[], object]:
    """Profiles that refer to others, and files in their place."""
    source = draw.choice(sorted(profiles.FOLDER.glob("*.toml")))
    file = folder / "own.toml"
    file.write_bytes(mutated(source.read_bytes(), draw))
    if draw.random() < 0.4:
        file.write_text(
            f'like = "{draw.choice(["base", "own", "../base", "hdd-7k2"])}"\nsummary = "\x1b[31m"\n'
        )
        base = folder / "base.toml"
        base.write_text('like = "own"\n')
        if draw.random() < 0.7:
            replace_by_no_file(base, draw)
    if draw.random() < 0.3:
        replace_by_no_file(file, draw)
    prices = folder / "prices.toml"
    prices.write_bytes((SHIPPED / "prices.toml").read_bytes())
    if draw.random() < 0.2:
        replace_by_no_file(prices, draw)
    return command(
        *draw.choice(
            [
                ["device", "show", file], ["predict", EXAMPLE, "--place", f"log={file}", "--seeds", "2"],
                ["device", "simulate", file, "--preset", "randread-4k", "--count", "50"],
                ["device", "simulate", "ram", "--requests", file],
                ["device", "import", file, folder / "base.toml"],
                ["advise", EXAMPLE, "--devices", f"{file}", "--prices", prices, "--seeds", "2"],
                ["fleet", "advise", EXAMPLE, "--devices", "nvme-dc", "--weights", prices, "--seeds", "2"],
            ]
        )
    )  # fmt: skip


RECORDING_KINDS = [
    Kind("recording bytes", _bytes),
    Kind("recording lies", _lies),
    Kind("recording about", _about),
    Kind("recording rows", _rows),
    Kind("recording files", _no_files),
    Kind("observation", _observation),
    Kind("day", _day),
    Kind("results folder", _results),
    Kind("device files", _device),
]
