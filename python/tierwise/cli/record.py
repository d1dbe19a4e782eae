"""``tierwise record``: one recording, or a day of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tierwise import _core
from tierwise._core import Rules
from tierwise.capture import sql_session as data_sources
from tierwise.capture.day_recorder import DayRecorder
from tierwise.capture.postgres_names import target_with_table_names
from tierwise.capture.record import StopCondition, record_command, record_running_database
from tierwise.capture.schedule import BurstCost, BurstSchedule, DayPlan, FinishedRecording, parse_burst_duty
from tierwise.capture.target import (
    RecordingTarget,
    identify_server,
    load_rules,
    pid_of_engine,
    target_of_process,
)
from tierwise.cli import printing
from tierwise.cli.options import DsnFile, progress_console
from tierwise.cli.output import FormatOption, OutputFormat, print_result, print_warning
from tierwise.cli.printing import print_error
from tierwise.host import clean
from tierwise.model import numbers
from tierwise.model.errors import FailedCheckError, TierwiseError
from tierwise.model.units import parse_duration_s
from tierwise.predict.timeline import timeline_of
from tierwise.predict.usability import replay_and_judge
from tierwise.recording import Day, Recording, remove_recording
from tierwise.report.recording.day_report import day_document
from tierwise.report.recording.recording_report import TakenRecording, taken_recording_document


def record_day(
    pid: int,
    find: Callable[[int], RecordingTarget],
    out: Path,
    plan: DayPlan,
    dsn: data_sources.Dsn | None,
    format: OutputFormat,
) -> None:
    """Record by the plan, and print a line for each recording, gap and change of the schedule.

    In another format than text, these lines go to stderr, and stdout gets the timeline of the day.
    """
    console = printing.printable_console(stderr=format is not OutputFormat.TEXT)
    with progress_console(to_stderr=True).status("attaching", spinner="line") as status:
        day = DayRecorder(
            pid,
            find,
            out,
            plan,
            progress=status.update,
            note=lambda line: _print_line(console, line),
            dsn=dsn,
        )
        try:
            day.run()
        finally:
            if not any(out.iterdir()):
                remove_recording(out)
    if not day.taken:
        raise FailedCheckError("nothing was recorded", "let it run until the first recording has ended")
    for line in _summary(day.taken, day.elapsed_s):
        _print_line(console, line)
    if format is OutputFormat.TEXT:
        printing.print_text(f"day: {out}")
        return
    timeline = timeline_of(Day.open(out))
    print_result(day_document(timeline), {"day": timeline}, "day", format)


def _summary(taken: list[FinishedRecording], elapsed_s: float) -> list[str]:
    """Size and cost of a day, with the arithmetic of the cost."""
    cost = BurstCost.of(taken)
    recorded_share = sum(recording.recorded_s for recording in taken) / elapsed_s
    cpu_share = sum(recording.cpu_s for recording in taken) / elapsed_s / (os.cpu_count() or 1)
    size_bytes = sum(recording.size_bytes for recording in taken)
    measured = sum(recording.rate_ratio is not None for recording in taken)
    ends = (
        f" (95\u00a0%: {100 * cost.low:.1f} to {100 * cost.high:.1f}\u00a0%, "
        f"{numbers.counted_noun(measured, 'recording')})"
        if cost.low is not None and cost.high is not None
        else f" (measured in {measured} of {numbers.counted_noun(len(taken), 'recording')})"
    )
    return [
        f"{numbers.counted_noun(len(taken), 'recording')} in {elapsed_s:,.0f} s, {size_bytes / 1e6:,.1f} MB",
        f"cost: {100 * recorded_share * cost.share:.2f}\u00a0% of the day's throughput: bursts, "
        f"{100 * recorded_share:.2f}\u00a0% of the time, lost {100 * cost.share:.1f}\u00a0% of the rate"
        f"{ends}",
        f"the recorder used {100 * cpu_share:.2f}\u00a0% of the processors",
    ]


def _print_line(console: Console, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)


_DEFAULT_S = 120.0
_DEFAULT_EACH_S = 60.0
_MB = 1_000_000
_DEFAULT_DAY = "24h"


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND…]", help="record this command")
    ] = None,
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="new directory for the recording")],
    pid: Annotated[
        int | None, typer.Option(help="PID of the server's first process; also in a container")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="record the only running server of this engine")] = None,
    rules: Annotated[
        str | None,
        typer.Option("--rules", help="rules for the roles of files: an engine's name, or a TOML file"),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="PATH=ROLE",
            help="role of a file, or of all files below a directory, before the rules; * stands for any "
            "letters; may be repeated",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="for example 30s or 10min; default 2min, until the command ends, or 24h with --every",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="record a day: one short recording in each period, such as 10min, for --duration",
        ),
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="length of one recording of --every; default half of it, at most 60s"
        ),
    ] = None,
    until_usable: Annotated[
        str | None,
        typer.Option(help="record until the recording is usable, at most for this time, such as 10min"),
    ] = None,
    duty: Annotated[
        str | None,
        typer.Option(
            help="share of the time to record; default 1/25, up to 1/10 if below 2min, for a command 1"
        ),
    ] = None,
    burst: Annotated[
        str | None,
        typer.Option(
            help="length of one burst; default 500ms, or an eighth of what is recorded if that is shorter"
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            metavar="MB",
            min=1,
            max=1_000_000_000,
            help="largest size of the recording, or of each with --every; where it would be exceeded, "
            "events are taken in a smaller share of --duration",
        ),
    ] = BurstSchedule.limit_bytes // _MB,
    dsn: Annotated[
        str | None,
        typer.Option(
            help=f"DSN without a password, to read the engine's counters; or set {data_sources.VARIABLE}"
        ),
    ] = None,
    dsn_file: DsnFile = None,
    buffer_content: Annotated[
        bool,
        typer.Option(
            help="read over the DSN at the end how much of each table the engine's buffer holds (PostgreSQL: "
            "pg_buffercache; MariaDB and MySQL: INNODB_BUFFER_PAGE, for which the server copies a row "
            "for each page into a temporary table: expensive, and refused for pools of more than 8 GiB)"
        ),
    ] = False,
    names_from_files: Annotated[
        bool,
        typer.Option(help="without a DSN: read the names of PostgreSQL's tables from the server's files"),
    ] = False,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Record what a database does, by programs in the kernel, for predict, profile and advise.

    Give one of --pid, --engine and a command. Nothing is installed in the database.
    """
    if sum(given is not None for given in (pid, engine, command)) != 1:
        raise TierwiseError("record what?", "give one of --pid PID, --engine NAME and -- COMMAND")
    if until_usable is not None and command is not None:
        raise TierwiseError("--until-usable: a command ends when it ends", "leave the option out")
    if every is None and each is not None:
        raise TierwiseError("--each: only a day has several recordings", "give --every, for example 10min")
    if every is not None and (until_usable is not None or command is not None):
        option = "--until-usable" if until_usable is not None else "-- COMMAND"
        raise TierwiseError(f"--every: a day is of a running server, without {option}", "leave one out")
    if names_from_files and (command is not None or data_sources.find_dsn(dsn, dsn_file) is not None):
        other = "-- COMMAND: only a running server" if command is not None else "--dsn: the server itself"
        raise TierwiseError(f"--names-from-files and {other} gives the names", "leave one out")
    clean.clean_before_operation(print_warning)
    named = rules or engine
    chosen = None if named is None else load_rules(named)
    roles = role or []
    if every is not None:
        pid = _first_process(pid, engine)
        plan = _day(duration, every, each, duty, burst, limit)
        source = _source(dsn, dsn_file, buffer_content=buffer_content)
        find = partial(_target, rules=chosen, roles=roles, names_from_files=names_from_files)
        _print_server(find(pid))
        record_day(pid, find, output, plan, source, format)
        return
    longest_s = None if until_usable is None else parse_duration_s(until_usable, "--until-usable")
    schedule = _schedule(duration, duty, burst, limit, whole=command is not None, longest_s=longest_s)
    source = _source(dsn, dsn_file, buffer_content=buffer_content)
    console = progress_console(to_stderr=True)
    with console.status("attaching", spinner="line") as status:
        if command is not None:
            record_command(command, chosen, output, schedule, status.update, source, roles=roles)
        else:
            target = _target(_first_process(pid, engine), chosen, roles, names_from_files=names_from_files)
            _print_server(target)
            enough = (
                None
                if longest_s is None
                else StopCondition(lambda path: replay_and_judge(path).usable, longest_s)
            )
            record_running_database(target, output, schedule, status.update, source, enough)
    with console.status("replaying", spinner="line"):
        judged = replay_and_judge(output)
    opened = Recording.open(output)
    print_result(
        taken_recording_document(opened, judged), TakenRecording.of(opened, judged), "record", format
    )
    if longest_s is not None and not judged.usable:
        raise typer.Exit(1)


def _target(
    pid: int, rules: Rules | None, roles: Sequence[str], *, names_from_files: bool
) -> RecordingTarget:
    target = target_of_process(pid, rules, roles)
    return target_with_table_names(target) if names_from_files else target


def _source(dsn: str | None, dsn_file: Path | None, *, buffer_content: bool) -> data_sources.Dsn | None:
    source = data_sources.find_dsn(dsn, dsn_file)
    if not buffer_content:
        return source
    if source is None:
        raise TierwiseError("--buffer-content: the buffer is read over SQL", "give --dsn or --dsn-file too")
    return replace(source, buffer_content=True)


def _first_process(pid: int | None, engine: str | None) -> int:
    return pid_of_engine(engine) if engine is not None else pid or 0


def _schedule(
    duration: str | None,
    duty: str | None,
    burst: str | None,
    limit_mb: int,
    *,
    whole: bool,
    longest_s: float | None,
) -> BurstSchedule:
    """The schedule of one recording, which ends after ``longest_s`` at the latest."""
    seconds = None if duration is None else parse_duration_s(duration, "--duration")
    if seconds is None and not whole:
        seconds = min(_DEFAULT_S, longest_s or _DEFAULT_S)
    if seconds is not None and longest_s is not None and longest_s < seconds:
        raise TierwiseError(
            f"--until-usable: {longest_s:g} s is shorter than --duration, {seconds:g} s, after which the "
            "recording is judged first",
            "give a longer time, or a shorter --duration",
        )
    share = 1.0 if duty is None and whole else _duty(duty, seconds or _DEFAULT_S)
    return BurstSchedule(
        seconds=seconds,
        duty=share,
        burst_s=_burst_s(burst, seconds, share),
        limit_bytes=limit_mb * _MB,
    )


def _day(
    duration: str | None, every: str, each: str | None, duty: str | None, burst: str | None, limit_mb: int
) -> DayPlan:
    every_s = parse_duration_s(every, "--every")
    each_s = min(_DEFAULT_EACH_S, every_s / 2) if each is None else parse_duration_s(each, "--each")
    share = _duty(duty, each_s)
    return DayPlan(
        seconds=parse_duration_s(duration or _DEFAULT_DAY, "--duration"),
        every_s=every_s,
        each=BurstSchedule(each_s, share, _burst_s(burst, each_s, share), limit_mb * _MB),
    )


def _duty(duty: str | None, seconds: float) -> float:
    return _core.default_duty(seconds) if duty is None else parse_burst_duty(duty)


def _burst_s(burst: str | None, seconds: float | None, duty: float) -> float:
    return _core.default_burst_s(seconds, duty) if burst is None else parse_duration_s(burst, "--burst")


def _print_server(target: RecordingTarget) -> None:
    """Name the server on stderr: with --engine, nobody named it, and it may be in a container."""
    if target.pid is not None and target.rules.is_server:
        print_error(f"recording {identify_server(target.pid, target.rules)['described']}")
