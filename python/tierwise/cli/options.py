"""Options and settings with the same meaning in every command, and defaults from a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tierwise.cli.printing import printable_console
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.units import parse_duration_s, parse_size_bytes

if TYPE_CHECKING:
    from rich.console import Console

Output = Annotated[Path, typer.Option("-o", "--output", help="directory for results")]
Duration = Annotated[str | None, typer.Option("--duration", metavar="TIME", help="for example 30s or 10min")]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=2**63 - 1, help="seed of the random number generator; random by default"
    ),
]
FixedSeed = Annotated[
    int, typer.Option("--seed", min=0, max=2**63 - 1, help="seed of the random number generator")
]


def only_from_command_line(context: typer.Context, parameter: typer.CallbackParam, wanted: bool) -> bool:
    """Accept an option that harms what others use only from the command line."""
    source = context.get_parameter_source(str(parameter.name))
    if wanted and (source is None or source.name != "COMMANDLINE"):
        raise TierwiseError(
            f"{parameter.opts[0]} comes from a variable or a configuration file",
            "remove it there, and give it on the command line each time",
        )
    return wanted


def _may_drop_caches(context: typer.Context, parameter: typer.CallbackParam, wanted: bool) -> bool:
    """Accept the option only from the command line, and only where it can be done."""
    if only_from_command_line(context, parameter, wanted):
        from tierwise.host import page_cache  # most commands need nothing of the host

        page_cache.require_drop_caches()
    return wanted


DropCaches = Annotated[
    bool,
    typer.Option(
        "--drop-caches",
        callback=_may_drop_caches,
        help="for cold starts, drop the page cache of the whole machine, other programs' too",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="print the actions without doing them")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="simulate on a Dask cluster: tls://HOST:PORT, or local: processes of this machine",
    ),
]
TrustScheduler = Annotated[
    bool,
    typer.Option(
        "--trust-scheduler", help="connect to tcp:// on another machine, whose scheduler can run code here"
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=1024, help="processes of a local cluster; by default one for each processor"
    ),
]
Devices = Annotated[str, typer.Option("--devices", metavar="DEVICE,DEVICE", help="candidate devices")]
Have = Annotated[
    str,
    typer.Option("--have", metavar="DEVICE,DEVICE", help="devices that are owned already and cost nothing"),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="MONEY/month", help="most that a placement may cost, for example 50/month"
    ),
]
GoalText = Annotated[
    str | None, typer.Option("--goal", help="target: tps=NUMBER, or a latency such as p99=5ms")
]
MayLose = Annotated[
    str | None,
    typer.Option(
        "--may-lose",
        metavar="TIME",
        help="a setting may be recommended if a crash loses commits of this time at most, for example 1s",
    ),
]
Headroom = Annotated[
    str,
    typer.Option(
        "--headroom", metavar="PERCENT", help="free space on each new device, as a share of its files"
    ),
]
Growth = Annotated[
    str,
    typer.Option(
        "--growth",
        metavar="PERCENT",
        help="growth of the files that new devices have to hold, for example 50%; the load stays",
    ),
]
Years = Annotated[float, typer.Option("--years", help="service life of a purchased device")]
PricesFile = Annotated[
    Path | None, typer.Option("--prices", help="TOML file of prices, which replace those that ship")
]
RecordedOn = Annotated[
    str,
    typer.Option(
        "--recorded-on",
        metavar="DEVICE",
        help="what the recorded device is, for example gp3 or log=io2,all=gp3",
    ),
]
InstanceName = Annotated[
    str | None,
    typer.Option(
        "--instance",
        metavar="NAME|FILE",
        help="machine with limits for all its network volumes, its cores and memory: m6i.large, or a file",
    ),
]
Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance",
        metavar="NAME|FILE",
        help="machine of the database, with limits for its network volumes, cores and memory: m6i.large, "
        "or a file. Further ones are alternatives",
    ),
]
Rebuildable = Annotated[
    bool,
    typer.Option(
        "--rebuildable", help="the database can be rebuilt, as a replica: a machine's stop may lose files"
    ),
]
Grow = Annotated[
    str | None,
    typer.Option(
        "--grow",
        metavar="FACTOR",
        help="what breaks first when data and load grow, for example 3x, as --growth 3 of predict",
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="devices in factory state; by default they are worn in")]
Seeds = Annotated[int, typer.Option("--seeds", min=2, max=100, help="simulation runs for each answer")]
DsnFile = Annotated[Path | None, typer.Option("--dsn-file", help="file with the DSN, readable only by you")]
Names = Annotated[
    Path | None,
    typer.Option("--names", help="CSV file of the names of tables and indexes, where the recording has none"),
]


def duration_option_s(text: str | None, option: str) -> float | None:
    """Seconds in the value of an option; ``None`` if it was not given."""
    return None if text is None else parse_duration_s(text, option)


def size_option_bytes(text: str | None, option: str, least_bytes: int = 1) -> int | None:
    """Bytes in the value of an option; ``None`` if it was not given."""
    return None if text is None else parse_size_bytes(text, option, least_bytes)


CONFIG_FILE = "config.toml"


@dataclass
class GlobalOptions:
    """Settings, set once by the options before the command."""

    quiet: bool = False
    verbose: bool = False


SETTINGS = GlobalOptions()


def progress_console(*, to_stderr: bool = False) -> Console:
    """Console for progress; ``--quiet`` draws nothing."""
    return printable_console(quiet=SETTINGS.quiet, stderr=to_stderr)


_FIX_OF_DEFAULTS = "make it yours with chown and chmod, or set XDG_CONFIG_HOME to a directory of your own"


def option_defaults() -> dict[str, Any]:
    """Defaults of options by command, from the user's ``tierwise/config.toml``; nothing if there is none."""
    from platformdirs import user_config_path

    from tierwise.model.input_files import parse_toml, read_text
    from tierwise.model.output_files import require_own_file

    file = user_config_path("tierwise") / CONFIG_FILE
    if not os.access(file, os.F_OK):
        return {}
    with os_errors(file, _FIX_OF_DEFAULTS):
        require_own_file(file, _FIX_OF_DEFAULTS)
    return _with_parameter_names(parse_toml(read_text(file, "make it readable"), str(file)), str(file))


def _with_parameter_names(table: dict[str, Any], where: str) -> dict[str, Any]:
    """Options are written ``own-storage`` on the command line and in the file; an empty text is refused."""
    named: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, str) and not value.strip(" ,"):
            raise TierwiseError(f"{where}: {name} is empty", "give a value, or leave it out")
        inner = _with_parameter_names(value, where) if isinstance(value, dict) else value
        named[name.replace("-", "_")] = inner
    return named
