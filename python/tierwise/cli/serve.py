"""``tierwise serve``: the page of ``advise`` with sliders that the simulator answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import AdviceOptions, Terms
from tierwise.cli.options import (
    Budget,
    Devices,
    Fresh,
    GoalText,
    Growth,
    Have,
    Headroom,
    PricesFile,
    RecordedOn,
    Years,
)
from tierwise.cli.output import warn
from tierwise.cli.printing import echo
from tierwise.device_models.prices import YEARS
from tierwise.model.extras import require


def serve(
    recordings: Annotated[list[Path], typer.Argument(help="folders that tierwise record wrote")],
    *,
    devices: Devices = "",
    have: Have = "",
    budget: Budget = None,
    goal: GoalText = None,
    headroom: Headroom = "",
    growth: Growth = "",
    years: Years = YEARS,
    prices: PricesFile = None,
    recorded_on: RecordedOn = "",
    fresh: Fresh = False,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="port; a free one by default")] = 0,
) -> None:
    """Serve the page of advise with sliders for clients, cores, memory, growth and arrival rate."""
    require("serve", "serve")
    from tierwise.serve.guard import is_loopback  # which import the extra
    from tierwise.serve.recordings import ServedRecordings
    from tierwise.serve.server import listen, serve
    from tierwise.serve.simulator import Simulator

    terms = Terms.parse(
        have=have, headroom=headroom, growth=growth, years=years, prices=prices, recorded_on=recorded_on
    )
    options = AdviceOptions.parse(devices, budget, goal, terms, fresh=fresh)
    with listen(host, port) as listening:
        if not is_loopback(host):
            warn(
                f"--host {host}: whoever reaches this machine and knows the address sees the recordings; "
                "it travels unencrypted"
            )
        simulator = Simulator()
        try:
            server = serve(ServedRecordings(recordings, options, simulator), simulator, listening, host)
            echo(server.url)
            server.run()
        finally:
            simulator.close()
