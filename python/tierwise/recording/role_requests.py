"""Requests of each role as a load generator describes them: sizes, randomness, depth, syncs."""

from __future__ import annotations

from tierwise.model.placement import Role
from tierwise.model.units import SECTOR_BYTES
from tierwise.recording.recording import Recording
from tierwise.results.measurements import StrictModel

_NS = 1e9
_SIZES = f"""
SELECT f.role, b.op::VARCHAR AS op, b.sectors * {SECTOR_BYTES} AS size_bytes, count(*) AS requests
FROM blocks b JOIN (SELECT file, role::VARCHAR AS role FROM files) f USING (file)
WHERE f.role IS NOT NULL AND b.op::VARCHAR IN ('read', 'write') AND b.sectors > 0
GROUP BY ALL ORDER BY ALL
"""
_RANDOM = """
SELECT role, op, avg((sector NOT BETWEEN begun AND ended)::INT) AS random_share FROM (
    SELECT f.role, b.op::VARCHAR AS op, b.sector, lag(b.sector) OVER earlier AS begun,
           lag(b.sector + b.sectors) OVER earlier AS ended
    FROM blocks b JOIN (SELECT file, role::VARCHAR AS role FROM files) f USING (file)
    WHERE f.role IS NOT NULL AND b.op::VARCHAR IN ('read', 'write') AND b.sector IS NOT NULL
    WINDOW earlier AS (PARTITION BY b.file, op ORDER BY b.issued_ns, b.sector)
) WHERE ended IS NOT NULL GROUP BY ALL
"""
_UNDER_WAY = """
SELECT f.role, sum(b.completed_ns - b.issued_ns) AS summed_ns
FROM blocks b JOIN (SELECT file, role::VARCHAR AS role FROM files) f USING (file)
WHERE f.role IS NOT NULL AND b.op::VARCHAR IN ('read', 'write') GROUP BY ALL
"""


class RequestDirection(StrictModel):
    """Reads or writes of one role."""

    requests: int = 0
    sizes: dict[int, int] = {}
    """Size in bytes -> number of requests of that size."""
    random_share: float = 1.0
    """Share of requests that do not go on from the one before on the same file: a log writes its last page
    again, so one that begins within it goes on, too."""


class RoleRequests(StrictModel):
    """The requests of one role."""

    role: Role
    reads: RequestDirection
    writes: RequestDirection
    syncs: int
    """Syncs that threads asked for; where they wrote through the cache instead, flushes of the device."""
    depth: float
    """Mean number of requests under way while there was one."""


def role_requests(recording: Recording) -> dict[Role, RoleRequests]:
    """The requests of each role that had reads or writes."""
    traffic = {role.role: role for role in recording.break_down().roles if role.role is not None}
    with recording.tables() as tables:
        sizes = tables.execute(_SIZES).fetchall()
        random = {(role, op): share for role, op, share in tables.execute(_RANDOM).fetchall()}
        under_way = dict(tables.execute(_UNDER_WAY).fetchall())
    requests = {}
    for role in Role:
        own = {op: {size: n for r, o, size, n in sizes if (r, o) == (role, op)} for op in ("read", "write")}
        if role not in traffic or not any(own.values()):
            continue
        directions = {
            op: RequestDirection(
                requests=sum(counts.values()), sizes=counts, random_share=random.get((role, op), 1.0)
            )
            for op, counts in own.items()
        }
        seen = traffic[role]
        busy_ns = seen.busy_s * _NS
        requests[role] = RoleRequests(
            role=role,
            reads=directions["read"],
            writes=directions["write"],
            syncs=seen.syncs or seen.flushes,
            depth=max(under_way.get(role, 0) / busy_ns, 1.0) if busy_ns > 0 else 1.0,
        )
    return requests
