"""``tierwise record``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tierwise import record as recorder
from tierwise.errors import TierwiseError
from tierwise.host import clean
from tierwise.record import rules as rule_files
from tierwise.recording import Recording

Out = Annotated[Path, typer.Option("--out", "-o", help="directory of the recording, to be made")]
Pid = Annotated[int | None, typer.Option(help="first process of a running database, also a container's")]
Engine = Annotated[str | None, typer.Option(help="the one server of this engine that runs here")]
RulesName = Annotated[
    str | None, typer.Option("--rules", help="what files are for: an engine's name, or a TOML file")
]
Seconds = Annotated[float | None, typer.Option("--for", help="seconds; 60, or until the command ends")]
Duty = Annotated[str | None, typer.Option(help="share of the time to record: 1/10, or 1 for a command")]
Burst = Annotated[float, typer.Option(help="seconds of one burst")]
TwoSpeed = Annotated[
    bool, typer.Option("--two-speed", help="slow the emulated disk of the log in every other burst")
]
_DEFAULT_S = 60.0


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND…]", help="record this command")
    ] = None,
    *,
    out: Out,
    pid: Pid = None,
    engine: Engine = None,
    rules: RulesName = None,
    seconds: Seconds = None,
    duty: Duty = None,
    burst: Burst = 0.5,
    two_speed: TwoSpeed = False,
) -> None:
    """Record what a database does, from the kernel's tracepoints, for predict, profile and advise.

    Give one of --pid, --engine and a command. Nothing is installed in or told to the database.
    """
    if sum(given is not None for given in (pid, engine, command)) != 1:
        raise TierwiseError("record what?", "give one of --pid PID, --engine NAME and -- COMMAND")
    clean.clean()
    chosen = None if rules is None else rule_files.load(rules)
    default_duty = recorder.DEFAULT_DUTY if command is None else "1"
    schedule = recorder.Schedule(
        seconds=_DEFAULT_S if seconds is None and command is None else seconds,
        duty=recorder.parse_duty(duty or default_duty),
        burst_s=burst,
        two_speed=two_speed,
    )
    console = Console(stderr=True)
    with console.status("attaching", spinner="line") as status:
        if command is not None:
            told = recorder.record_command(command, _rules_of(command, chosen), out, schedule, status.update)
        else:
            target = (
                recorder.of_engine(engine, chosen)
                if engine is not None
                else recorder.of_pid(pid or 0, chosen)
            )
            told = recorder.record_running(target, out, schedule, status.update)
    _print(Console(), out, told)


def _rules_of(command: list[str], chosen: rule_files.Rules | None) -> rule_files.Rules:
    rules = chosen or rule_files.of_program(Path(command[0]).name)
    if rules is None:
        raise TierwiseError(
            f"{command[0]} is of no engine that tierwise knows",
            f"give --rules with one of {', '.join(rule_files.names())}, or a TOML file",
        )
    return rules


def _print(console: Console, out: Path, told: dict[str, Any]) -> None:
    size_bytes = sum(path.stat().st_size for path in out.iterdir())
    events, bursts = told["losses"]["recorded_events"], told["bursts"]
    traced_s = sum(one["end_ns"] - one["start_ns"] for one in bursts) / 1e9
    lines = [
        f"recorded {told['engine']} for {told['duration_s']:.1f} s: "
        f"{len(bursts)} bursts, {traced_s:.1f} s, {events:,} events, "
        f"{told['losses']['lost_events']:,} lost, {size_bytes / 1e6:.1f} MB",
        _cost(told["cost"]),
        *(
            f"check {'passed' if one['passed'] else 'FAILED'}: {one['name']}: {one['detail']}"
            for one in told["checks"]
        ),
        *(f"warning: {warning}" for warning in Recording.open(out).warnings),
        f"recording: {out}",
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def _cost(cost: dict[str, Any] | None) -> str:
    if cost is None or cost["rate_ratio_low"] <= 0:
        return "cost: not measured, for want of unrecorded time beside two bursts"
    low, high = (100 * (1 - cost[key]) for key in ("rate_ratio_high", "rate_ratio_low"))
    return (
        f"cost within bursts: {100 * (1 - cost['rate_ratio']):.1f} % of the rate "
        f"(95 %: {low:.1f} to {high:.1f}); {cost['event_cpu_ns']:.0f} ns an event"
    )
