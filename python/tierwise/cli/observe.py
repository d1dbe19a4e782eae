"""``tierwise observe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.capture import observe as observer
from tierwise.capture.sql_session import VARIABLE, find_dsn
from tierwise.cli.options import DsnFile, progress_console
from tierwise.cli.output import print_document
from tierwise.cli.printing import print_text
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import EVERYTHING, Role, parse_placement
from tierwise.model.units import parse_duration_s
from tierwise.predict import resolve_device
from tierwise.report.recording.recording_report import observation_document


def observe(
    output: Annotated[Path, typer.Option("-o", "--output", help="new directory for the observation")],
    *,
    dsn: Annotated[
        str | None,
        typer.Option(
            help="DSN without a password, as postgresql://user@host/database or mysql://user@host; "
            f"or set {VARIABLE}"
        ),
    ] = None,
    dsn_file: DsnFile = None,
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="for example 600s or 10min")
    ] = "600s",
    rate: Annotated[
        float,
        typer.Option(
            min=observer.LEAST_RATE_HZ, max=observer.MOST_RATE_HZ, help="samples of the sessions a second"
        ),
    ] = observer.RATE_HZ,
    cores: Annotated[
        int | None, typer.Option(min=1, max=1024, help="cores of the server, which SQL does not tell")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=DEVICE,…",
            help="devices that the roles lie on now, such as log=gp3,all=gp3; narrows the answers",
        ),
    ] = None,
) -> None:
    """Observe over SQL what a database's sessions wait for: profile, predict and advise read it."""
    source = find_dsn(dsn, dsn_file)
    if source is None:
        raise TierwiseError("observe what?", f"give --dsn or --dsn-file, or set {VARIABLE}")
    devices = _devices(on)
    console = progress_console(to_stderr=True)
    with console.status("connecting", spinner="line") as status:
        seen = observer.observe_server(
            source,
            output,
            parse_duration_s(duration, "--duration"),
            rate_hz=rate,
            cores=cores,
            devices=devices,
            status=status.update,
        )
    print_document(observation_document(seen))
    print_text(f"observation: {output}")


def _devices(text: str | None) -> dict[Role, str]:
    """Role -> name of a shipped profile; ``all`` stands for the roles that are not named."""
    named = parse_placement(text, "--on") if text is not None else {}
    devices = {role: resolve_device(device) for role, device in named.items()}
    for role, device in devices.items():
        if device.name != device.profile.name:
            raise TierwiseError(f"--on: {role}={named[role]} is no shipped device", "name one by its profile")
    rest = devices.get(EVERYTHING)
    values = {role: devices.get(role.value, rest) for role in Role}
    return {role: device.name for role, device in values.items() if device is not None}
