"""The grammar of the command line: every command has help, one name means one thing, statuses are kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import tierwise
from support.paths import RECORDINGS
from tierwise import cli
from tierwise.cli.commands import all_commands
from tierwise.cli.output import OutputFormat
from tierwise.model.errors import FailedCheckError, HostError, TierwiseError

OLD = ("--json", "--out", "--for", "--placement", "--learn")


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for subcommand in command.commands.values():
            yield from leaves(f"{name} {subcommand.name}", subcommand)
    else:
        yield name, command


COMMANDS = dict(leaf for name, command in all_commands() for leaf in leaves(name, command))


@pytest.mark.parametrize("name", COMMANDS)
def test_options_mean_one_thing(name: str) -> None:
    options = {opt: parameter for parameter in COMMANDS[name].params for opt in parameter.opts}
    assert not options.keys() & set(OLD), "this name was given up"
    assert COMMANDS[name].help and all(parameter.help for parameter in COMMANDS[name].params)
    if "--output" in options:
        assert "-o" in options["--output"].opts
    for option in ("--duration", "--slow-for", "--burst", "--until-usable"):
        if option in options:
            assert options[option].type_descriptor.annotation in (str, str | None), "durations take units"
    if "--format" in options and name not in ("compare", "profile"):
        assert options["--format"].type_descriptor.annotation is OutputFormat


def test_the_help_fits_and_names_every_command() -> None:
    shown = tierwise("--help", COLUMNS="80").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert all(f"│ {name.split()[0]} " in shown for name in COMMANDS)
    assert tierwise("-h").stdout == tierwise("--help").stdout
    assert tierwise("--version").stdout.startswith("tierwise ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_there(shell: str) -> None:
    script = tierwise("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert script.returncode == 0 and " _TIERWISE_COMPLETE=" in script.stdout, script


def test_a_plan_names_the_engine_that_is_run() -> None:
    """The others of the study are run with --engine only."""
    assert "crud on postgres (or mariadb, sqlite, rocksdb), " in tierwise("study", "show", "crud").stdout
    planned = tierwise("study", "run", "crud", "--engine", "sqlite", "--dry-run").stdout
    assert "crud on sqlite, scale" in planned


def test_defaults_come_from_the_environment_and_a_file(tmp_path: Path) -> None:
    config = tmp_path / "tierwise"
    config.mkdir()
    (config / "config.toml").write_text('[study.show]\nformat = "csv"\n')
    show = ("study", "show", "crud")
    by_file = tierwise(*show, XDG_CONFIG_HOME=str(tmp_path))
    assert by_file.stdout.startswith("device,is"), by_file
    by_variable = tierwise(*show, XDG_CONFIG_HOME=str(tmp_path), TIERWISE_STUDY_SHOW_FORMAT="json")
    assert by_variable.stdout.startswith("{")
    assert tierwise(*show, "--format", "md", TIERWISE_STUDY_SHOW_FORMAT="json").stdout.startswith("**")
    (config / "config.toml").write_text("[study")
    broken = tierwise(*show, XDG_CONFIG_HOME=str(tmp_path))
    assert broken.returncode == 2 and "config.toml" in broken.stderr
    (config / "config.toml").write_text('[study.run]\nown-storage = ""\n')
    empty = tierwise(*show, XDG_CONFIG_HOME=str(tmp_path))
    assert empty.returncode == 2 and "config.toml: own-storage is empty" in empty.stderr


def test_a_home_that_cannot_be_looked_at_holds_no_defaults() -> None:
    """As root's, which runuser leaves to another account: every command ended as a defect of tierwise."""
    shown = tierwise("study", "show", "crud", XDG_CONFIG_HOME="/" + "x" * 300)
    assert shown.returncode == 0, shown.stderr


def test_statuses(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def status_of(error: Exception) -> int:
        def failing(_: object, **_options: object) -> None:
            raise error

        monkeypatch.setattr(cli, "app", failing)
        with pytest.raises(SystemExit) as ended:
            cli.main([])
        return int(str(ended.value.code))

    assert status_of(FailedCheckError("no run is valid", "run again")) == 1
    assert status_of(TierwiseError("--x: bad", "write y")) == 2
    assert status_of(HostError("no FUSE", "modprobe fuse")) == 3
    assert capsys.readouterr().err.splitlines()[-1] == "tierwise: no FUSE: modprobe fuse"
    assert status_of(OSError(errno.ENOSPC, "No space left on device", "/out/calls.parquet")) == 3
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("tierwise: /out/calls.parquet: No space left on device: free space there")
    assert status_of(ZeroDivisionError("division by zero")) == 70
    (line,) = capsys.readouterr().err.splitlines()
    details = Path(line.rpartition(" ")[2])
    assert "ZeroDivisionError" in details.read_text("utf-8")
    details.unlink()


def test_a_terminal_of_no_width_still_prints() -> None:
    outcome = tierwise("recording", "show", str(RECORDINGS / "order-entry"), COLUMNS="0")
    assert outcome.returncode == 0 and "postgres" in outcome.stdout


def test_unknown_names_are_suggested() -> None:
    assert "Did you mean 'device'" in tierwise("devise").stderr
    assert tierwise("devise").returncode == 2
    gone = tierwise("device", "show", "nvme-cd")
    assert gone.returncode == 2 and "nvme-dc" in gone.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("study run commit-rate --dry-run --own-storage @", "--own-storage"),
        ("study run commit-rate --dry-run --own-storage=@", "--own-storage"),
        ("study run commit-rate --dry-run --placements @", "--placements"),
        ("advise keyed-update --devices nvme-dc --have @", "--have"),
        ("advise keyed-update --devices nvme-dc --recorded-on @", "--recorded-on"),
        ("predict keyed-update --memory @", "--memory"),
        ("predict keyed-update --place @", "--place"),
        ("profile @", "profile"),
    ],
)
@pytest.mark.parametrize("empty", ["", " ", ","])
def test_an_empty_value_is_refused(arguments: str, named: str, empty: str) -> None:
    """A path of nothing was the current directory, and a list of nothing was no list."""
    done = tierwise(*(part.replace("@", empty) for part in arguments.split()))
    refusal = f"tierwise: {named}: the value {empty!r} is empty: give a value, or leave it out\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", refusal)


def test_an_empty_value_of_another_program_is_its_own() -> None:
    assert "is empty" not in tierwise("record", "--", "/nonexistent/program", "").stderr


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--memory", "999999999T"), "--memory: 999999999T is more than 1,048,576T: write for example 4G"),
        (("--memory", "1"), "--memory: 1 is 1 byte: write the unit"),
        (("--place", "log=#2"), "a device has no name: write for example nvme-dc"),
        (("--set", "commit_delay=1") * 17, "settings: List should have at most 16 items"),
    ],
)
def test_no_value_of_predict_is_a_defect_or_left_out(options: tuple[str, ...], line: str) -> None:
    done = tierwise("predict", RECORDINGS / "keyed-update", *options)
    assert done.returncode == 2 and done.stderr.startswith(f"tierwise: {line}"), done


@pytest.mark.parametrize("megabytes", ["0", "1000000001", "99999999999999999999"])
def test_a_limit_that_no_disk_has_is_refused(megabytes: str, tmp_path: Path) -> None:
    done = tierwise("record", "-o", tmp_path / "new", "--limit", megabytes, "--", "true")
    assert done.returncode == 2 and "--limit" in done.stderr
    assert not (tmp_path / "new").exists()
