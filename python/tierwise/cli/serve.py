"""``tierwise serve``: the page of ``advise`` with sliders that the simulator answers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import Goal, parse_budget_usd
from tierwise.cli.output import warn
from tierwise.model.errors import HostError
from tierwise.model.suggestions import names_in

_EXTRA = ("starlette", "uvicorn")


def serve(
    recordings: Annotated[list[Path], typer.Argument(help="folders that tierwise record wrote")],
    *,
    devices: Annotated[str, typer.Option(metavar="DEVICE,DEVICE", help="candidate devices")],
    budget: Annotated[
        str | None, typer.Option(metavar="MONEY/month", help="limit in US dollars, for example 50/month")
    ] = None,
    goal: Annotated[str | None, typer.Option(help="target: tps=NUMBER, or a latency such as p99=5ms")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="devices in factory state; by default they are worn in")
    ] = False,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="port; a free one by default")] = 0,
) -> None:
    """Serve the page of advise with sliders for clients, cores, memory, growth and arrival rate."""
    if any(find_spec(name) is None for name in _EXTRA):
        raise HostError("serve needs starlette and uvicorn", "type: pip install 'tierwise[serve]'")
    from tierwise.serve.guard import is_loopback  # the extra may be missing
    from tierwise.serve.recordings import Asked, Shelf
    from tierwise.serve.server import listen, serve
    from tierwise.serve.simulator import Simulator

    asked = Asked(
        names_in(devices),
        parse_budget_usd(budget) if budget is not None else None,
        Goal.parse(goal) if goal is not None else None,
        fresh,
    )
    with listen(host, port) as listening:
        if not is_loopback(host):
            warn(
                f"--host {host}: whoever reaches this machine and knows the address sees the recordings; "
                "it travels unencrypted"
            )
        simulator = Simulator()
        try:
            server = serve(Shelf(recordings, asked, simulator), simulator, listening, host)
            typer.echo(server.url)
            server.run()
        finally:
            simulator.close()
