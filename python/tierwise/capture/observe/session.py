"""One observation, from the first connection to its file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from tierwise.capture.counter_reading import UnreadableError
from tierwise.capture.dsn import Dsn
from tierwise.capture.observe.counting import Counting
from tierwise.capture.observe.mysql import MysqlServer
from tierwise.capture.observe.postgres import PostgresServer
from tierwise.capture.observe.server import Server, State, Tally
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.recording import Observation, make_folder, write_observation
from tierwise.recording.observation import Wait
from tierwise.results import WaitClass, WaitProfile
from tierwise.results.wait_sampling import WaitSampler

RATE_HZ = 20.0
LEAST_RATE_HZ, MOST_RATE_HZ = 10.0, 50.0
_MOST_COST = 0.005
"""Share of one core that a server may work on the samples; the rate is lowered for it."""
_LOOK_S = 0.2
_NOTHING = "nothing was observed: {}"


@dataclass(frozen=True)
class Told:
    """What the server's user tells about it, and SQL does not.

    Attributes:
        cores: of the server.
        devices: role -> shipped profile of the device that it lies on.
    """

    cores: int | None
    devices: Mapping[Role, str]


def observe(
    dsn: Dsn,
    out: Path,
    seconds: float,
    *,
    rate_hz: float = RATE_HZ,
    told: Told,
    status: Callable[[str], None] = lambda _: None,
) -> Observation:
    """Observe a server and write what was seen; a lost connection or Ctrl-C keeps what was seen until then.

    Args:
        dsn: of the server; never stored.
        out: folder of the observation: empty or new.
        seconds: how long.
        rate_hz: ticks a second, ``LEAST_RATE_HZ`` to ``MOST_RATE_HZ``.
        told: what the user tells.
        status: called with what is done now.

    Raises:
        TierwiseError: no connection, rights that are missing, or a server that nobody uses.
    """
    status("connecting")
    try:
        server = _connected(dsn)
    except UnreadableError as error:
        raise TierwiseError(
            _NOTHING.format(": ".join(dict.fromkeys([error.reason, error.detail]))),
            "check the DSN and the rights of its user",
        ) from None
    try:
        make_folder(out)
        seen = _observed(server, seconds, rate_hz, told, status)
    except UnreadableError as error:
        raise TierwiseError(_NOTHING.format(error.reason), "observe again") from None
    finally:
        server.close()
    write_observation(out, seen)
    return seen


def _connected(dsn: Dsn) -> Server:
    return PostgresServer(dsn.text) if dsn.kind == "postgresql" else MysqlServer(dsn.text)


def _observed(
    server: Server, seconds: float, rate_hz: float, told: Told, status: Callable[[str], None]
) -> Observation:
    status("reading the catalogue")
    catalogue = server.catalogue()
    tick_s = server.tick_s()
    rate_hz, slowed = _affordable(rate_hz, tick_s)
    tally, counting = Tally(told.cores), Counting(server)
    sampler = WaitSampler(server.probe(tally), rate_hz)
    started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    counting.read()
    sampler.start()
    ended = _wait(sampler, counting, began_s + seconds, status)
    sampler.stop()
    duration_s = time.monotonic() - began_s
    counting.finish()
    profile = sampler.sampled
    if profile is None:
        raise TierwiseError("no client session was seen", "observe while the database works")
    limits = [*server.limits, *catalogue.limits, *slowed, *ended, *counting.limits]
    return Observation(
        started_at=started_at,
        tierwise=metadata.version("tierwise"),
        engine=server.engine,
        engine_version=server.version,
        duration_s=duration_s,
        ticks=tally.ticks,
        rate_hz=profile.rate_hz,
        waits=list(_waits(tally, counting.counts)),
        sampling_errors=_errors(profile),
        cores=told.cores,
        running=tally.running / tally.ticks,
        counted_s=counting.counted_s,
        counts=counting.counts,
        sizes=dict(catalogue.sizes),
        data_directory_bytes=catalogue.data_directory_bytes,
        page_bytes=server.page_bytes,
        devices=dict(told.devices),
        sampling_cost=tick_s * profile.rate_hz,
        limits=limits,
    )


def _wait(
    sampler: WaitSampler, counting: Counting, until_s: float, status: Callable[[str], None]
) -> list[str]:
    """Wait for the end, or for what comes before it: a sentence then."""
    asked_s, began_s = until_s - time.monotonic(), time.monotonic()
    try:
        while (left_s := until_s - time.monotonic()) > 0:
            status(f"observing, {left_s:,.0f} s left")
            if sampler.failure is not None:
                raise sampler.failure
            counting.read_if_due()
            time.sleep(min(_LOOK_S, left_s))
    except UnreadableError as error:
        return [_short(began_s, asked_s, error.reason)]
    except KeyboardInterrupt:
        return [_short(began_s, asked_s, "it was interrupted")]
    return []


def _short(began_s: float, asked_s: float, why: str) -> str:
    return f"the observation ended after {time.monotonic() - began_s:,.0f} of {asked_s:,.0f} s: {why}"


def _affordable(rate_hz: float, tick_s: float) -> tuple[float, list[str]]:
    """The rate that costs the server little enough, and what to say about it."""
    most_hz = _MOST_COST / tick_s if tick_s > 0 else rate_hz
    if most_hz >= rate_hz:
        return rate_hz, []
    lowered_hz = max(most_hz, LEAST_RATE_HZ)
    return lowered_hz, [
        f"sessions were sampled {lowered_hz:,.0f} times a second instead of {rate_hz:,.0f}: a sample takes "
        f"the server {tick_s * 1e3:,.1f} ms"
    ]


def _waits(tally: Tally, counts: Mapping[str, int]) -> Iterator[Wait]:
    """Mean sessions in each state; reads of pages are split between tables and indexes by the pages read."""
    pages = {Role.DATA: counts.get("heap_reads", 0), Role.INDEX: counts.get("index_reads", 0)}
    read = sum(pages.values())
    for state, seen in sorted(tally.states.items(), key=lambda item: -item[1]):
        split = state.wait_class == "data_read" and state.role is Role.DATA and read
        shares: dict[Role | None, float] = {state.role: 1.0}
        if split:
            shares = {role: count / read for role, count in pages.items() if count}
        for role, share in shares.items():
            yield _wait_of(state, role, seen / tally.ticks * share)


def _wait_of(state: State, role: Role | None, sessions: float) -> Wait:
    return Wait(event=state.event, wait_class=state.wait_class, role=role, sessions=sessions)


def _errors(profile: WaitProfile) -> dict[WaitClass, float]:
    return {name: share.sampling_error for name, share in profile.shares.items()}
