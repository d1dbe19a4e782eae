"""Observes a server over SQL, without root: samples of its sessions' waits, and its own counters."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from tierwise.capture.engine_counters import SESSIONS, SqlSession
from tierwise.capture.sql_session import (
    CounterReading,
    Dsn,
    SessionState,
    SqlReadError,
    reporting_delay_error,
)
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.recording import Observation, new_recording_folder, write_observation
from tierwise.recording.observation import ObservedWait
from tierwise.results import WaitClass
from tierwise.results.wait_sampling import WaitSampler

RATE_HZ = 20.0
LEAST_RATE_HZ, MOST_RATE_HZ = 10.0, 50.0
_MOST_COST = 0.005
"""Share of one core that a server may work on the samples; the rate is lowered for it."""
_LOOK_S = 0.2
_READ_EACH_S = 10.0
"""Time between two readings of the counters: a lost connection loses little."""
_TRIES = 9
_NOTHING = "nothing was observed: {}"


def observe_server(
    dsn: Dsn,
    out: Path,
    seconds: float,
    *,
    rate_hz: float = RATE_HZ,
    cores: int | None = None,
    devices: Mapping[Role, str] | None = None,
    status: Callable[[str], None] = lambda _: None,
) -> Observation:
    """Observe a server and write what was seen; a lost connection or Ctrl-C keeps what was seen until then.

    Args:
        dsn: of the server; never stored.
        out: folder of the observation: empty or new.
        rate_hz: ticks a second, ``LEAST_RATE_HZ`` to ``MOST_RATE_HZ``.
        cores: of the server, which SQL does not tell, like the next.
        devices: role -> shipped profile of the device that it lies on.
    """
    with ExitStack() as undo:
        status("connecting")
        try:
            server = SESSIONS[dsn.kind](dsn.text)
            undo.callback(server.close)
            sampling = server.second()
            undo.callback(sampling.close)
            origin = server.read().origin
            other = sampling.read().origin != origin
            if other and server.read().origin == origin:  # else its statistics were reset in between
                raise TierwiseError(
                    "two sessions of the DSN are of different servers: it leads to a load balancer",
                    "give the address of one server",
                )
            server.watch()
        except SqlReadError as error:
            raise TierwiseError(
                _NOTHING.format(": ".join(dict.fromkeys([error.reason, error.detail]))),
                "check the DSN and the rights of its user",
            ) from None
        undo.enter_context(new_recording_folder(out))
        try:
            tally = _WaitTally(sampling, cores)
            seen = _observed(server, tally, seconds, rate_hz, devices or {}, status)
        except SqlReadError as error:
            raise TierwiseError(_NOTHING.format(error.reason), "observe again") from None
        write_observation(out, seen)
    return seen


@dataclass
class _WaitTally:
    """Looks at the sessions and adds them up by state.

    Attributes:
        session: looks at the others.
        cores: of the server; ``None`` if unknown.
        states: sessions seen in each state.
        unused: number of each session that has done nothing since the first look -> its states so far.
        running: sessions without a wait, at most ``cores`` of one tick.
        ticks: number of looks.
    """

    session: SqlSession
    cores: int | None
    states: Counter[SessionState] = field(default_factory=Counter)
    unused: dict[int, Counter[SessionState]] = field(default_factory=dict)
    running: int = 0
    ticks: int = 0

    def sample_waits(self, delay_s: float) -> list[WaitClass]:
        """The class of each client session, ``delay_s`` from now."""
        look = self.session.look(delay_s)
        states = look.states
        self.states.update(states)
        for number in look.active & self.unused.keys():  # until now, its client paused
            self.states.update(self.unused.pop(number))
        # A session that ended was never used.
        self.unused = {number: self.unused.get(number, Counter()) for number in look.unused}
        for number, state in look.unused.items():
            self.unused[number][state] += 1
        running = sum(count for state, count in states.items() if state.wait_class == "cpu")
        self.running += running if self.cores is None else min(running, self.cores)
        self.ticks += 1
        return [state.wait_class for state in states.elements()]

    def cpu_s(self) -> float:
        """Unknown over SQL."""
        return 0.0

    def close(self) -> None:
        """Disconnect."""
        self.session.close()

    def limits(self, duration_s: float) -> list[str]:
        """What the looks do not tell, as sentences."""
        if not self.unused:
            return self.session.limits
        sessions = numbers.counted_noun(len(self.unused), "session")
        return [
            *self.session.limits,
            f"{sessions} did nothing for {duration_s:,.0f} s and counted as unused: if clients pause for "
            "longer, answers promise too much",
        ]

    def waits(self, counts: Mapping[str, int]) -> Iterator[ObservedWait]:
        """Mean sessions in each state; reads of pages are split between tables and indexes by their pages."""
        pages = {Role.DATA: counts.get("heap_reads", 0), Role.INDEX: counts.get("index_reads", 0)}
        read = sum(pages.values())
        for state, seen in self.states.most_common():
            shares: dict[Role | None, float] = {state.role: 1.0}
            if state.wait_class == "data_read" and state.role is Role.DATA and read:
                shares = {role: count / read for role, count in pages.items() if count}
            for role, share in shares.items():
                sessions = seen / self.ticks * share
                yield ObservedWait(
                    event=state.event, wait_class=state.wait_class, role=role, sessions=sessions
                )


class _CounterIncreases:
    """Increases of the server's counters, without those of intervals in which its statistics were reset."""

    def __init__(self, server: SqlSession, sampling: SqlSession) -> None:
        """Read over one session for the first time, while another samples; raises as :meth:`read`."""
        self._server, self._sampling = server, sampling
        self.sums = Counter[str]()
        self.counted_s = 0.0
        self._resets = 0
        self._before, self._read_s = self._reading(), time.monotonic()

    def _reading(self) -> CounterReading:
        reading = self._server.read()
        own = self._server.asked + self._sampling.asked
        return replace(reading, counts={**reading.counts, "own": own})

    def read(self, least_s: float = 0.0) -> None:
        """Add the increases since the last reading, if that is long enough ago.

        Raises:
            UnreadableError: if the server does not answer.
        """
        if time.monotonic() - self._read_s < least_s:
            return
        now, now_s = self._reading(), time.monotonic()
        increases, since_s = now.since(self._before), now_s - self._read_s
        self._before, self._read_s = now, now_s
        if increases is None:
            self._resets += 1
            return
        self.counted_s += since_s
        self.sums.update(increases)

    def finish(self) -> list[str]:
        """Read a last time, if the server still answers; gives what is missing, as sentences."""
        limits = []
        try:
            self.read()
        except SqlReadError as error:
            limits.append(
                f"the counters are of the first {self.counted_s:,.0f} s only, then they could not be read: "
                f"{error.reason}"
            )
        if self.sums:
            self.sums["transactions"] = self._server.transactions(self.sums)
            doubts = [
                self._server.uncounted(self.sums),
                reporting_delay_error(self._server.late_s, self.counted_s),
            ]
            limits += [doubt for doubt in doubts if doubt]
        if self._resets:
            limits.append(
                "the server's statistics were reset meanwhile, or those of a dropped database are gone, "
                f"{self._resets} times: the intervals between readings in which that happened are not counted"
            )
        return limits


def _observed(
    server: SqlSession,
    tally: _WaitTally,
    seconds: float,
    rate_hz: float,
    devices: Mapping[Role, str],
    status: Callable[[str], None],
) -> Observation:
    status("reading the catalogue")
    sizes = server.sizes()
    look_s = _look_s(server)
    rate_hz, slowed = _affordable_rate(rate_hz, look_s)
    sampler = WaitSampler(tally, rate_hz)
    started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    counting = _CounterIncreases(server, tally.session)
    sampler.start()
    ended = _wait(sampler, counting, began_s, seconds, status)
    sampler.stop()
    duration_s = time.monotonic() - began_s
    uncounted = counting.finish()
    profile = sampler.sampled
    if profile is None:
        raise TierwiseError("no client session did anything", "observe while the database works")
    return Observation(
        started_at=started_at,
        tierwise=metadata.version("tierwise"),
        engine=server.engine,
        engine_version=server.version,
        duration_s=duration_s,
        ticks=tally.ticks,
        rate_hz=profile.rate_hz,
        waits=list(tally.waits(counting.sums)),
        sampling_errors={name: share.sampling_error for name, share in profile.shares.items()},
        cores=tally.cores,
        running=tally.running / tally.ticks,
        counted_s=counting.counted_s,
        counts=dict(counting.sums),
        sizes=sizes,
        data_directory_bytes=sum(sizes.values()) if sizes else None,
        page_bytes=server.page_bytes,
        devices=dict(devices),
        sampling_cost=look_s * profile.rate_hz,
        limits=list(dict.fromkeys([*server.limits, *tally.limits(duration_s), *slowed, *ended, *uncounted])),
    )


def _look_s(server: SqlSession) -> float:
    """Least time of a look at the sessions, beyond that of an empty statement: others may be running."""
    looks_s, pings_s = [], []
    for _ in range(_TRIES):
        began_s = time.perf_counter()
        server.look(0.0)
        seen_s = time.perf_counter()
        server.ping()
        looks_s.append(seen_s - began_s)
        pings_s.append(time.perf_counter() - seen_s)
    return max(min(looks_s) - min(pings_s), 0.0)


def _wait(
    sampler: WaitSampler,
    counting: _CounterIncreases,
    began_s: float,
    seconds: float,
    status: Callable[[str], None],
) -> list[str]:
    """Wait for the end, or for what comes before it: a sentence then."""
    try:
        while (left_s := began_s + seconds - time.monotonic()) > 0:
            status(f"observing, {left_s:,.0f} s left")
            if sampler.failure is not None:
                raise sampler.failure
            counting.read(_READ_EACH_S)
            time.sleep(min(_LOOK_S, left_s))
    except (SqlReadError, KeyboardInterrupt) as error:
        why = error.reason if isinstance(error, SqlReadError) else "it was interrupted"
        return [f"the observation ended after {time.monotonic() - began_s:,.0f} of {seconds:,.0f} s: {why}"]
    return []


def _affordable_rate(rate_hz: float, look_s: float) -> tuple[float, list[str]]:
    """The rate that costs the server little enough, and what to say about it."""
    most_hz = _MOST_COST / look_s if look_s > 0 else rate_hz
    if most_hz >= rate_hz:
        return rate_hz, []
    lowered_hz = max(most_hz, LEAST_RATE_HZ)
    return lowered_hz, [
        f"sessions were sampled {lowered_hz:.3g} times a second instead of {rate_hz:.3g}: a sample takes "
        f"the server {look_s * 1e3:,.1f} ms"
    ]
