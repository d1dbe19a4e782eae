"""fio: a job for each role that moves, from its recorded requests, to run on a candidate device.

Options by fio's documentation, 'HOWTO': ``bssplit``, ``percentage_random``, ``rwmixread``, ``fdatasync``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.units import MIB
from tierwise.predict import resolve_device
from tierwise.recording.role_requests import RequestDirection, RoleRequests
from tierwise.report.change.placement_change import PlacementChange, comment_line, text_of_lines

_MOST_BYTES = 4 << 30
"""Of the file of a job, so that a test fills no device."""
_MOST_SIZES = 8
_MOST_DEPTH = 256
_RUNTIME_S = 60
_GLOBAL = (
    "[global]",
    "directory=${DEVICE_DIRECTORY}",
    "filename=tierwise-fio.test",
    "ioengine=libaio",
    "direct=1",
    "time_based=1",
    f"runtime={_RUNTIME_S}",
    "",
)


def fio_jobs(change: PlacementChange, requests: Mapping[Role, RoleRequests]) -> str:
    """A job file; roles that move to one device run at the same time, those of the next device after them."""
    if not requests.keys() & change.moves.keys():
        raise TierwiseError(
            "--emit fio: the recording has no requests of the roles that move", "record under load, with root"
        )
    return text_of_lines([*_header(), *_GLOBAL, *_jobs(change, requests)]).rstrip("\n") + "\n"


def _header() -> Iterator[str]:
    yield comment_line("The recorded requests of the roles that move, for a candidate device:")
    yield comment_line("DEVICE_DIRECTORY=/mount/of/device fio THIS_FILE")
    yield comment_line("fio writes tierwise-fio.test there, a file of at most 4 GiB: remove it afterwards.")
    yield comment_line(
        "A recording does not tell fsync from fdatasync; fio asks as fast as the device answers."
    )
    yield ""


def _jobs(change: PlacementChange, requests: Mapping[Role, RoleRequests]) -> Iterator[str]:
    first = True
    for device, roles in change.devices.items():
        begins = not first
        for role in roles:
            if role not in requests:
                yield comment_line(f"{role}: no request was recorded")
                continue
            yield from _job(requests[role], device, change.needed_bytes.get(role, 0), begins)
            first = begins = False
        yield ""


def _job(role_requests: RoleRequests, device: str, size_bytes: float, begins: bool) -> Iterator[str]:
    yield f"[{role_requests.role}]"
    yield comment_line(f"to {resolve_device(device).profile.name}")
    if begins:
        yield "stonewall"
    reads, writes = role_requests.reads, role_requests.writes
    total = reads.requests + writes.requests
    if reads.requests and writes.requests:
        yield "rw=randrw"
        yield f"rwmixread={min(max(round(100 * reads.requests / total), 1), 99)}"
        yield f"percentage_random={_percent(reads)},{_percent(writes)}"
        yield f"bssplit={block_size_split(reads.sizes)},{block_size_split(writes.sizes)}"
    else:
        only = reads if reads.requests else writes
        yield "rw=randread" if reads.requests else "rw=randwrite"
        yield f"percentage_random={_percent(only)}"
        yield f"bssplit={block_size_split(only.sizes)}"
    yield f"iodepth={min(max(round(role_requests.depth), 1), _MOST_DEPTH)}"
    if writes.requests and role_requests.syncs:
        yield f"fdatasync={max(round(writes.requests / role_requests.syncs), 1)}"
    largest = max([*reads.sizes, *writes.sizes])
    size = min(max(size_bytes, largest, MIB), _MOST_BYTES)
    yield f"size={-(-int(size) // MIB)}m"


def _percent(direction: RequestDirection) -> int:
    return round(100 * direction.random_share)


def block_size_split(sizes: Mapping[int, int]) -> str:
    """The commonest sizes with whole percentages that sum to 100, as ``bssplit`` takes them.

    Args:
        sizes: size in bytes -> number of requests.
    """
    common = sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_SIZES]
    total = sum(count for _, count in common)
    exact = {size: 100 * count / total for size, count in common}
    shares = {size: int(share) for size, share in exact.items()}
    ordered = sorted(exact, key=lambda size: exact[size] - shares[size], reverse=True)
    for size in ordered[: 100 - sum(shares.values())]:
        shares[size] += 1
    return ":".join(f"{size}/{share}" for size, share in sorted(shares.items()) if share)
