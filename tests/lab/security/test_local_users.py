"""What another user of the machine without rights tries while root makes files, folders and mounts."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.other_users import Place, give, needs_root, place, plant_link, run, swapping
from support.paths import RECORDINGS
from tierwise import _core
from tierwise.api.views import View
from tierwise.capture.record import StopCondition, record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import load_rules, target_of_process
from tierwise.cli import app
from tierwise.cli.options import option_defaults
from tierwise.cli.output import write_output_file
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.host import ledger
from tierwise.host.clean import clean
from tierwise.host.disk.disk import WHOLE, EmulatedDisk, Partition
from tierwise.host.users import ACCOUNT
from tierwise.lab.studies import study
from tierwise.lab.studies.runner.run_storage import open_storage
from tierwise.lab.studies.study import plan_runs
from tierwise.lab.workloads import workload_reader
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.recording import Observation, make_recording_folder, redact_recording, write_observation
from tierwise.recording.observation import ObservedWait

pytestmark = needs_root
EXAMPLE = RECORDINGS / "keyed-update"
MIB = 1 << 20
ROUNDS = 2000
STUDY = """
name = "mounted"
question = "?"
engines = ["postgres"]
workload = "order_entry"
transactions = 10
repeats = 1
baseline = "emulated"
[devices]
emulated = { profile = "nvme-dc" }
[placements.emulated]
default = "emulated"
"""
cannot_record = pytest.mark.skipif(
    _core.recording_impossible() is not None, reason="nothing can be recorded here"
)


@pytest.fixture
def there() -> Iterator[Place]:
    with place() as made:
        yield made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Defaults


def test_root_takes_no_defaults_of_another_user(there: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[study.show]\nformat = "csv"\n'
    for folder in (there.own, there.theirs):
        (folder / "tierwise").mkdir()
        (folder / "tierwise" / "config.toml").write_text(text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(there.theirs))
    with pytest.raises(TierwiseError, match="theirs belongs to nobody: make it yours"):
        option_defaults()
    own = there.own / "tierwise" / "config.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(there.own))
    assert option_defaults() == {"study": {"show": {"format": "csv"}}}
    own.rename(there.own / "kept.toml")
    own.symlink_to(there.own / "kept.toml")
    assert option_defaults() == {"study": {"show": {"format": "csv"}}}
    give(there.own / "kept.toml")
    with pytest.raises(TierwiseError, match=r"config\.toml belongs to nobody"):
        option_defaults()
    os.chown(there.own / "kept.toml", 0, 0)
    (there.own / "kept.toml").chmod(0o666)
    with pytest.raises(TierwiseError, match="can be written by others"):
        option_defaults()


def test_a_device_is_overwritten_only_where_that_is_typed(
    there: Place, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(there.own))
    probe = ["device", "probe", "/dev/nothing"]
    monkeypatch.setenv("TIERWISE_DEVICE_PROBE_DESTROY", "1")
    by_variable = CliRunner().invoke(app, probe).exception
    monkeypatch.delenv("TIERWISE_DEVICE_PROBE_DESTROY")
    (there.own / "tierwise").mkdir()
    (there.own / "tierwise" / "config.toml").write_text("[device.probe]\ndestroy = true\n")
    by_file = CliRunner().invoke(app, probe).exception
    for refused in (by_variable, by_file):
        assert "--destroy comes from a variable or a configuration file" in str(refused)
    assert "/dev/nothing" in str(CliRunner().invoke(app, [*probe, "--destroy"]).exception)


# Folders


def test_another_users_empty_folder_is_not_taken(there: Place) -> None:
    for make in (make_recording_folder, lambda out: redact_recording(EXAMPLE, out)):
        with pytest.raises(TierwiseError, match="theirs belongs to nobody: name a directory of your own"):
            make(there.theirs)
    assert not list(there.theirs.iterdir())


def test_no_folder_is_made_where_another_user_could_replace_it(there: Place) -> None:
    there.own.chmod(0o777)
    with pytest.raises(TierwiseError, match="theirs belongs to nobody"):
        make_recording_folder(there.theirs / "new" / "out")
    with pytest.raises(TierwiseError, match="own can be written by others"):
        make_recording_folder(there.own / "new" / "out")
    os.chown(there.own, 0, 100)
    there.own.chmod(0o775)
    with pytest.raises(TierwiseError, match="own can be written by others"):
        make_recording_folder(there.own / "new" / "out")
    assert not [*there.own.iterdir(), *there.theirs.iterdir()]


def test_another_users_link_in_a_directory_of_all_is_not_followed(there: Place) -> None:
    there.own.chmod(0o1777)
    plant_link(there.own / "link", there.victim)
    for out in (there.own / "link" / "out", there.own / "link"):
        with pytest.raises(TierwiseError, match="link belongs to nobody"):
            make_recording_folder(out)
    assert there.untouched


def test_whoever_called_sudo_has_his_own_directory(there: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(there.theirs.stat().st_uid))
    make_recording_folder(there.theirs / "out")
    assert (there.theirs / "out").stat().st_uid == 0 and mode(there.theirs / "out") == 0o700


def test_an_own_folder_that_is_taken_is_closed_first(there: Place) -> None:
    there.own.chmod(0o755)
    make_recording_folder(there.own)
    assert mode(there.own) == 0o700


def test_an_own_link_still_leads_to_a_results_folder(there: Place) -> None:
    (there.own / "link").symlink_to(there.own / "far")
    (there.own / "far").mkdir()
    make_recording_folder(there.own / "link" / "out")
    assert (there.own / "far" / "out").is_dir()


def test_a_folder_that_is_swapped_for_a_link_changes_no_other(there: Place, run_dir: Path) -> None:
    with swapping(there, "x-"):
        for _ in range(ROUNDS):
            try:
                made = ledger.make_directory("x", there.theirs, 0o755)
            except TierwiseError as error:
                assert "belongs to nobody" in str(error)
                break
            made.entry.remove()
            if not there.untouched:
                break
    assert there.untouched


def test_a_probes_folder_may_be_in_a_databases_directory_and_is_written_by_descriptor(
    there: Place, run_dir: Path
) -> None:
    from tierwise.model.output_files import rename_proof_path

    with swapping(there, "probe-"):
        for _ in range(200):
            with suppress(TierwiseError, OSError):  # It was moved away in the meantime.
                made = ledger.make_directory("probe", there.theirs, in_foreign=True)
                made.entry.remove()
                with rename_proof_path(made.path) as folder:
                    (folder / "file").write_text("x")
    assert there.untouched


@pytest.mark.parametrize("link", [False, True])
def test_a_directory_in_the_place_of_a_probes_folder_is_not_removed(
    link: bool, there: Place, run_dir: Path
) -> None:
    made = ledger.make_directory("probe", parent=there.theirs, in_foreign=True)
    made.path.rename(there.theirs / "moved")
    if link:
        plant_link(made.path, there.victim)
    else:
        there.victim.rename(made.path)
    made.remove()
    made.entry.update(owner=replace(made.entry.owner, start_ticks=0))
    with pytest.raises(TierwiseError, match="is not what tierwise made"):
        clean()
    if link:
        made.path.unlink()
    else:
        made.path.rename(there.victim)
    assert there.untouched
    (there.theirs / "moved").rename(made.path)
    assert clean() == [f"directory {made.entry.name}"]
    assert not made.path.exists()


def test_the_ledger_is_not_made_in_another_users_directory(
    there: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERWISE_RUN_DIR", str(there.theirs / "run"))
    with pytest.raises(TierwiseError, match="belongs to nobody"):
        ledger.entries()
    assert not list(there.theirs.iterdir())


def test_temporary_directories_are_private(run_dir: Path) -> None:
    with ledger.make_directory("test-private") as made:
        assert mode(made) == 0o700


# Files


def to_html(file: Path) -> None:
    View([], [], "title").to_html(file)


def to_times(file: Path) -> None:
    simulate_job(profiles.load_profile("nvme-dc"), SimulationJob(preset="randread-4k", count=10, times=file))


def to_observation(file: Path) -> None:
    wait = ObservedWait(event="x", wait_class="cpu", sessions=1.0)
    about = {
        "started_at": "2026-11-29T12:00:00Z",
        "tierwise": "",
        "engine": "postgres",
        "duration_s": 1.0,
        "ticks": 1,
    }
    write_observation(file.parent, Observation.model_validate({**about, "rate_hz": 1.0, "waits": [wait]}))


def to_page(file: Path) -> None:
    write_output_file(file, b"page")


WRITERS = {
    "page.html": to_page,
    "view.html": to_html,
    "times.csv": to_times,
    "observation.json": to_observation,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_planted_link_is_not_written_through(name: str, there: Place) -> None:
    plant_link(there.theirs / name, there.secret)
    with pytest.raises(TierwiseError, match="belongs to nobody"):
        WRITERS[name](there.theirs / name)
    assert there.untouched


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_not_written_through_an_own_link(name: str, there: Place) -> None:
    """Root owns the links of an archive that root has unpacked."""
    (there.own / name).symlink_to(there.secret)
    with pytest.raises((TierwiseError, OSError), match=r"symbolic link|exists"):
        WRITERS[name](there.own / name)
    assert there.untouched


def test_an_own_link_to_a_folder_does_not_lead_through_another_users_directory(there: Place) -> None:
    (there.own / "near").mkdir()
    (there.own / "link").symlink_to("near")
    to_page(there.own / "link" / "page.html")
    assert (there.own / "near" / "page.html").read_text() == "page"
    plant_link(there.theirs / "link", there.victim)
    (there.own / "far").symlink_to(there.theirs / "link")
    with pytest.raises(TierwiseError, match="belongs to nobody"):
        to_page(there.own / "far" / "page.html")
    assert there.untouched


def test_a_page_can_go_to_the_standard_output(there: Place) -> None:
    code = (
        "from pathlib import Path; from tierwise.cli.output import write_output_file\n"
        "write_output_file(Path('/dev/stdout'), b'page')"
    )
    for output in (subprocess.PIPE, (there.own / "redirected").open("wb")):
        done = subprocess.run([sys.executable, "-c", code], stdout=output, check=True)
        assert done.stdout in (b"page", None)
    assert (there.own / "redirected").read_text() == "page"


@pytest.mark.timeout(60)
def test_neither_a_pipe_nor_a_file_of_another_user_is_written(there: Place) -> None:
    there.own.chmod(0o1777)
    os.mkfifo(there.own / "pipe")
    give(there.own / "pipe")
    (there.own / "file").write_text("theirs")
    give(there.own / "file")
    for name in ("pipe", "file"):
        for write in (to_page, to_times):
            with pytest.raises(TierwiseError, match=r"belongs to nobody|Permission denied|is a pipe"):
                write(there.own / name)
    assert (there.own / "file").read_text() == "theirs"


def test_a_second_name_of_a_file_is_not_written(there: Place) -> None:
    for name in ("page.html", "times.csv"):
        os.link(there.secret, there.own / name)
    to_page(there.own / "page.html")
    with pytest.raises(TierwiseError, match="second name"):
        to_times(there.own / "times.csv")
    assert there.untouched


def test_a_workload_is_not_made_in_another_users_directory(there: Place) -> None:
    with pytest.raises(TierwiseError, match="belongs to nobody"):
        workload_reader.write_new_workload(there.theirs / "mine")


def test_a_file_for_another_account_is_new_and_not_what_he_planted(there: Place) -> None:
    from tierwise.host.users import ServerUser, write_file_for_user

    status = there.theirs.stat()
    user = ServerUser("nobody", status.st_uid, status.st_gid)
    plant_link(there.theirs / "password", there.secret)
    with pytest.raises(FileExistsError):
        write_file_for_user(user, there.theirs / "password", "new")
    assert there.untouched
    write_file_for_user(user, there.theirs / "other", "new")
    made = (there.theirs / "other").stat()
    assert (made.st_uid, stat.S_IMODE(made.st_mode)) == (user.uid, 0o600)


# Recordings


@cannot_record
def test_a_recording_is_private_while_it_is_judged(there: Place, run_dir: Path) -> None:
    modes: set[tuple[bool, int]] = set()

    def is_usable(recording: Path) -> bool:
        paths = [recording.parent, recording, *recording.iterdir(), *(there.own / "out").iterdir()]
        modes.update((path.is_dir(), mode(path)) for path in paths)
        return True

    target = target_of_process(os.getpid(), load_rules("sqlite"))
    schedule = BurstSchedule(seconds=1.5, duty=0.5, burst_s=0.2)
    record_running_database(
        target, there.own / "out", schedule, lambda _: None, None, StopCondition(is_usable, 30)
    )
    assert modes == {(True, 0o700), (False, 0o600)}
    assert {mode(path) for path in (there.own / "out").iterdir()} == {0o600}


# Mounts


def test_no_disk_is_mounted_where_another_user_could_move_it(there: Place, run_dir: Path) -> None:
    profile, parts = profiles.load_profile("nvme-dc"), [Partition(WHOLE, 32 * MIB)]
    for point in (there.theirs, there.theirs / "mount"):
        with pytest.raises(TierwiseError, match="belongs to nobody"):
            EmulatedDisk.up("refused", profile, parts, point).down()
    assert not list(there.theirs.iterdir()) and not ledger.entries()


def test_another_user_cannot_keep_a_studys_disk_from_being_unmounted(run_dir: Path) -> None:
    chosen = study.parse_study(STUDY, "study.toml")
    with ExitStack() as undo:
        storage = open_storage(chosen, plan_runs(chosen, 0)[0], [Role.LOG], undo)
        (point,) = storage.places.values()
        assert run("import os, sys; os.chdir(sys.argv[1])", point)[0] != 0
        as_server = ["setpriv", "--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups", "ls", str(point)]
        assert subprocess.run(as_server, check=False, capture_output=True).returncode == 0
