"""PostgreSQL over SQL, with the rights of ``pg_monitor``."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import Any

from tierwise.capture import postgres_counters
from tierwise.capture.counter_reading import Reading, UnreadableError
from tierwise.capture.observe.postgres_views import SIZES, views_of
from tierwise.capture.observe.server import Catalogue, State, Tally, require_one_server
from tierwise.engines.postgres.waits import classify
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg
from tierwise.model.roles import Role
from tierwise.results import WaitClass

APPLICATION = "tierwise observe"
_OLDEST = 110_000
_TRIES = 9
_ABOUT = """
    SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
           current_setting('block_size')::integer, pg_has_role('pg_monitor', 'USAGE'),
           quote_ident(current_user)
"""
_STATES = f"""
    SELECT state, wait_event_type, wait_event, count(*)
    FROM pg_stat_get_activity((SELECT NULL::integer FROM pg_sleep({{}})))
    WHERE backend_type = 'client backend' AND application_name <> '{APPLICATION}'
    GROUP BY 1, 2, 3
"""
"""The server waits, then reads its session table: an argument is evaluated before the function is called."""


class PostgresServer:
    """A server, and the session that reads its counters."""

    engine = "postgres"

    def __init__(self, dsn: str) -> None:
        """Connect.

        Raises:
            UnreadableError: if that fails.
            TierwiseError: if the user may not see the waits of others, or the server is too old.
        """
        self._dsn = dsn
        self._own = 0
        self._sampled: Tally | None = None
        self._connection = _connect(dsn)
        try:
            number, version, self.page_bytes, allowed, user = self._rows(_ABOUT)[0]
            self._require(number, version, allowed, user)
        except BaseException:
            self.close()
            raise
        self.version = str(version).split()[0]
        self._views, self.limits = views_of(number, self.version)

    def read(self) -> Reading:
        """Counters of all databases, without the transactions of this observation."""
        with postgres_counters.unreadable():
            reading = postgres_counters.read_from(self._connection)
            self._own += 3
            rows = [self._rows(view)[0] for view in self._views]
        counts = dict(reading.counts)
        for row in rows:
            counts |= {name: int(value) for name, value in row[1].items() if value is not None}
        counts["own"] = self._own + (self._sampled.ticks if self._sampled else 0)
        return Reading(counts, " ".join([reading.origin, *(row[0] for row in rows)]))

    @staticmethod
    def transactions(counts: dict[str, int]) -> int:
        """Transactions that ended, without those of this observation."""
        return max(postgres_counters.transactions(counts) - counts["own"], 0)

    def catalogue(self) -> Catalogue:
        """Files of the connected database by kind, those of other databases as data."""
        try:
            with postgres_counters.unreadable():
                ((sizes, elsewhere, others),) = self._rows(SIZES)
        except UnreadableError as error:
            return Catalogue({}, None, [f"the sizes of files are not known: {error.reason}"])
        found = {Role(role): int(size) for role, size in sizes.items() if size}
        limits = []
        if elsewhere:
            found[Role.DATA] = found.get(Role.DATA, 0) + int(elsewhere)
            limits = [f"{others} other databases count as data, their indexes too: {elsewhere / 1e9:,.3g} GB"]
        return Catalogue(found, sum(found.values()), limits)

    def probe(self, tally: Tally) -> PostgresProbe:
        """A sampler of the client sessions of all databases."""
        self._sampled = tally
        probe = PostgresProbe(self._dsn, tally)
        self._own += 2
        with postgres_counters.unreadable():
            require_one_server(*map(postgres_counters.server_of, (self._connection, probe.connection)))
        return probe

    def tick_s(self) -> float:
        """Least time of a look at the sessions, beyond that of an empty statement: others may be running."""
        looks = [self._timed(_STATES.format(0)) for _ in range(_TRIES)]
        empty = [self._timed("SELECT 1") for _ in range(_TRIES)]
        return max(min(looks) - min(empty), 0.0)

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(psycopg.Error):
            self._connection.close()

    def _timed(self, sql: str) -> float:
        began_s = time.perf_counter()
        self._rows(sql)
        return time.perf_counter() - began_s

    def _rows(self, sql: str) -> list[Any]:
        self._own += 1
        with postgres_counters.unreadable():
            return postgres_counters.rows_of(self._connection, sql)

    @staticmethod
    def _require(number: int, version: str, allowed: bool, user: str) -> None:
        if number < _OLDEST:
            raise TierwiseError(f"PostgreSQL {version} is too old to be observed", "observe 11 or later")
        if not allowed:
            raise TierwiseError(
                f"the user {user} may not see what other sessions wait for",
                f"run as an administrator: GRANT pg_monitor TO {user}",
            )


class PostgresProbe:
    """Looks at all client sessions with one statement over a connection of its own."""

    def __init__(self, dsn: str, tally: Tally) -> None:
        """Connect.

        Raises:
            UnreadableError: if that fails.
        """
        self._tally = tally
        self.connection = _connect(dsn)

    def sample(self, delay_s: float) -> list[WaitClass]:
        """The class of each client session, ``delay_s`` from now."""
        with postgres_counters.unreadable():
            rows = postgres_counters.rows_of(self.connection, _STATES.format(delay_s))
        states: Counter[State] = Counter()
        for state, event_type, event, sessions in rows:
            states[_state(state, event_type, event)] += sessions
        return self._tally.add(states)

    def cpu_s(self) -> float:
        """Unknown over SQL."""
        return 0.0

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(psycopg.Error):
            self.connection.close()


def _state(state: str | None, event_type: str | None, event: str | None) -> State:
    found = classify(state, event_type, event)
    if found == "client":
        return State("Client:ClientRead", found, None)
    if found == "cpu":
        return State("active", found, None)
    name = (event or "").lower()
    if name == "syncrep":  # for a standby and its network: not for a device of this server
        return State(f"{event_type}:{event}", "other", None)
    return State(f"{event_type}:{event}", found, _role(found, name))


def _role(wait_class: WaitClass, event: str) -> Role | None:
    """Role of the file that a wait is for; reads of pages are those of tables until they are split."""
    if wait_class in ("log_sync", "log_lock"):
        return Role.LOG
    if wait_class not in ("data_read", "data_write"):
        return None
    if event.startswith("buffile"):
        return Role.TEMP
    return Role.SYSTEM if event.startswith(("slru", "relationmap")) else Role.DATA


def _connect(dsn: str) -> psycopg.Connection[Any]:
    postgres_counters.require_well_formed(dsn)
    with postgres_counters.unreadable():
        return psycopg.connect(
            dsn,
            autocommit=True,
            application_name=APPLICATION,
            connect_timeout=postgres_counters.CONNECT_S,
            prepare_threshold=None,  # a pooler between may not keep prepared statements
        )
