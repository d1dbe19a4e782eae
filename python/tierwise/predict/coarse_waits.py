"""Waits of a transaction after a move, from its observed waits and requests simulated on the devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import (
    SimulationFigures,
    SimulationJob,
    simulate_compiled_profile,
)
from tierwise.model.placement import Role
from tierwise.model.units import significant_text
from tierwise.predict.named_devices import resolve_device
from tierwise.predict.observed_work import LogDemand, is_wait_off_log_device
from tierwise.predict.simulator_output import SimulatedRoleIo, TransactionWait, WorkSummary
from tierwise.recording.observation import Observation

Access = Literal["randread", "randwrite", "seqread", "seqwrite"]

_REQUESTS = 1000
"""Simulated requests behind a time: its mean is then within 3 % of the model's own."""
_KIB = 1024
_MOST_FLUSHED = 1 << 20
_KINDS = ("hdd", "ssd", "volume")
"""Kinds of a device that a database may lie on; arrays have the reads of their members."""


def flush_us(core: _core.Profile, appended_bytes: float, *, worn: bool) -> float:
    """Mean time of one append to the log until it is durable, one at a time, in µs.

    The kernel sends the flush after it only to a device with a volatile write cache.

    Args:
        appended_bytes: log of one flush; rounded up to a power of two of KiB.
        worn: whether the device is in the state of long use.
    """
    size = min(_power_of_two(max(appended_bytes, _KIB)), _MOST_FLUSHED)
    pattern = "log-append" if core.write_cache else "seqwrite"
    result = _simulated(core, f"{pattern}-{size // _KIB}k", worn)
    writes = result.ops["write"].count
    return result.virtual_s * 1e6 / writes


def request_us(core: _core.Profile, access: Access, size_bytes: int, depth: float, *, worn: bool) -> float:
    """Mean time of a request with ``depth`` outstanding, its queue on the device included, in µs.

    Between powers of two of ``depth`` it is interpolated.
    """
    worn = worn and access.endswith("write")  # reads take as long, and wearing a model in takes a second
    below = 1 << int(math.log2(max(depth, 1.0)))
    pattern = f"{access}-{size_bytes // _KIB}k-qd"
    low_us = _simulated(core, f"{pattern}{below}", worn).mean_us
    if depth <= below:
        return low_us
    high_us = _simulated(core, f"{pattern}{2 * below}", worn).mean_us
    return low_us + (high_us - low_us) * (depth / below - 1)


@lru_cache
def request_extremes_us(access: Access, size_bytes: int) -> tuple[float, float]:
    """The shortest and the longest time of a request over the shipped devices, new and without a queue."""
    devices = [profiles.load_profile(name) for name in profiles.profile_names()]
    times = [
        request_us(device.core, access, size_bytes, 1, worn=False)
        for device in devices
        if device.kind in _KINDS
    ]
    return min(times), max(times)


@lru_cache(maxsize=1024)
def _simulated(core: _core.Profile, pattern: str, worn: bool) -> SimulationFigures:
    return simulate_compiled_profile(
        core, SimulationJob(preset=pattern, count=_REQUESTS, precondition="random" if worn else "fresh")
    )


def _power_of_two(number: float) -> int:
    return 1 << math.ceil(math.log2(number))


Case = Literal["likely", "worst", "best"]

_SEQUENTIAL_BYTES = 128 << 10
"""Size of a request where the kernel reads ahead: the default of read_ahead_kb."""
_PAGES = (Role.DATA, Role.INDEX)
_ROUNDS = 3


@dataclass(frozen=True)
class PlacementWaits:
    """The waits of one placement in one case.

    Attributes:
        seen: what was observed.
        work: of a transaction.
        log: what it asks of the log.
        placed: role -> profile of its new device.
        case: how what waits leave open is answered.
        worn: whether new devices are in the state of long use.
    """

    seen: Observation
    work: WorkSummary
    log: LogDemand
    placed: Mapping[Role, _core.Profile]
    case: Case
    worn: bool

    @property
    def commits(self) -> float:
        """Of a transaction that wait for a flush; uncounted flushes may be of few transactions."""
        unknown = not self.log.counted and Role.LOG in self.placed
        return 0.0 if unknown and self.case == "best" else self.log.commits

    @property
    def log_bytes(self) -> float:
        """Log that a transaction writes."""
        return self.seen.counts.get("log_bytes", 0) / max(self.seen.transactions or 1, 1)

    def flush_us(self, rate_per_s: float) -> float:
        """Time of a flush of the log, at worst behind a request of another role on its device."""
        core = self.placed.get(Role.LOG)
        if core is None:
            ends = self.case == "best" and Role.LOG in relieved_roles(self.work, self.placed)
            return 0.0 if ends else self.log.flush_us
        alone_us = flush_us(core, self.log.flush_bytes, worn=self.worn)
        if self.case != "worst":
            return alone_us
        return alone_us + self._disturbance_us(core, rate_per_s)

    def times_us(self, rate_per_s: float, clients: int) -> dict[str, float]:
        """Time of a transaction by what it waits for, but the log, a core and its client."""
        times: dict[str, float] = {}
        before_us = after_us = self.work.demands.cpu_us
        for wait in self.work.demands.waits:
            if is_wait_off_log_device(wait):
                now_us = self._moved_us(wait, rate_per_s, clients)
                times[wait.category] = times.get(wait.category, 0.0) + now_us
                before_us, after_us = before_us + wait.time_us, after_us + now_us
        before_us += self.log.commits * self.log.flush_us
        after_us += self.commits * self.flush_us(rate_per_s)
        for wait in self.work.demands.waits:
            if wait.category in ("lock", "other"):
                held = self._held(after_us / before_us) if wait.category == "lock" else 1.0
                times[wait.category] = times.get(wait.category, 0.0) + wait.time_us * held
        return times

    def page_io(self, rate_per_s: float, elapsed_s: float) -> Iterator[SimulatedRoleIo]:
        """Calls for pages of tables and indexes, as the server counts them: memory may answer some."""
        done = max(self.seen.transactions or 1, 1)
        for role in _PAGES:
            share = page_share(self.seen, role)
            reads, writes = (
                round(self.seen.counts.get(name, 0) * share / done * rate_per_s * elapsed_s)
                for name in ("page_reads", "page_writes")
            )
            waiting = sum(
                self._moved_us(wait, rate_per_s, self.work.sessions)
                for wait in self.work.demands.waits
                if wait.role == role
            )
            if reads or writes or waiting:
                yield SimulatedRoleIo(
                    role=role,
                    reads=reads,
                    writes=writes,
                    flushes=0,
                    read_bytes=reads * self.seen.page_bytes,
                    written_bytes=writes * self.seen.page_bytes,
                    busy_s=min(waiting * rate_per_s / 1e6, 1.0) * elapsed_s,
                )

    def _moved_us(self, wait: TransactionWait, rate_per_s: float, clients: int) -> float:
        """A wait for pages: in proportion to the time of one request, with those that wait beside it."""
        core = self.placed.get(wait.role) if wait.role is not None else None
        if core is None:
            ends = self.case == "best" and wait.role in relieved_roles(self.work, self.placed)
            return 0.0 if ends else wait.time_us
        access, size_bytes = request_behind_wait(self.seen, wait)
        before_us = self._before_us(wait)
        depth = 1.0
        for _ in range(_ROUNDS):
            each_us = request_us(core, access, size_bytes, depth, worn=self.worn)
            now_us = wait.time_us * each_us / before_us
            depth = min(max(rate_per_s * now_us / 1e6, 1.0), clients)
        return now_us

    def _before_us(self, wait: TransactionWait) -> float:
        """Time of a request where the role lay: of its device if that is known, else of any device."""
        low_us, high_us = request_bounds_before_us(self.seen, self.work, wait)
        return {"worst": low_us, "likely": math.sqrt(low_us * high_us), "best": high_us}[self.case]

    def _held(self, longer: float) -> float:
        """A lock's wait over the observed one, if transactions take ``longer`` times as long with it.

        Likely in proportion; the extremes are no change, and the square of it, as in a queue.
        """
        extremes = sorted((1.0, longer**2))
        return {"best": extremes[0], "likely": longer, "worst": extremes[1]}[self.case]

    def _disturbance_us(self, core: _core.Profile, rate_per_s: float) -> float:
        """Mean rest of another role's request that a flush finds on its device."""
        others = [role for role, other in self.placed.items() if other is core and role in _PAGES]
        each_us = request_us(core, "randwrite", self.seen.page_bytes, 1, worn=self.worn)
        requests = sum(
            self.seen.counts.get(name, 0) * page_share(self.seen, role)
            for role in others
            for name in ("page_reads", "page_writes")
        ) / max(self.seen.transactions or 1, 1)
        return min(requests * rate_per_s * each_us / 1e6, 1.0) * each_us


def relieved_roles(work: WorkSummary, placed: Mapping[Role, _core.Profile]) -> set[Role]:
    """Roles that stay on a device that others leave, or may leave."""
    return {
        role
        for device in work.devices
        if set(device.roles) & placed.keys()
        for role in device.roles
        if role not in placed
    }


def page_share(seen: Observation, role: Role) -> float:
    """Share of tables, or of indexes, in the pages that were read; by size if none was."""
    read = {Role.DATA: seen.counts.get("heap_reads", 0), Role.INDEX: seen.counts.get("index_reads", 0)}
    sizes = {role: seen.sizes.get(role, 0) for role in _PAGES}
    counts = next(
        counts_of_roles for counts_of_roles in (read, sizes, {Role.DATA: 1}) if sum(counts_of_roles.values())
    )
    return counts.get(role, 0) / sum(counts.values())


def request_behind_wait(seen: Observation, wait: TransactionWait) -> tuple[Access, int]:
    """The request behind a wait: temporary files in sequence, all others page by page at random."""
    read = wait.category == "read"
    if wait.role is Role.TEMP:
        return ("seqread" if read else "seqwrite"), _SEQUENTIAL_BYTES
    return ("randread" if read else "randwrite"), seen.page_bytes


def request_bounds_before_us(
    seen: Observation, work: WorkSummary, wait: TransactionWait
) -> tuple[float, float]:
    """The least and the greatest time of a request where a role lay.

    A device that its user named has one time. Any other lies between the fastest and the slowest that ship,
    and is no faster than if every call had reached it.
    """
    access, size_bytes = request_behind_wait(seen, wait)
    rate = work.observed.transactions_per_s
    name = seen.devices.get(wait.role) if wait.role is not None else None
    if name is not None:
        depth = max(rate * wait.time_us / 1e6, 1.0)
        core = resolve_device(name).profile.core  # one object for each device: times are cached by it
        each_us = max(request_us(core, access, size_bytes, depth, worn=True), 1e-3)
        return each_us, each_us
    low_us, high_us = request_extremes_us(access, size_bytes)
    calls = seen.counts.get("page_reads", 0) if wait.category == "read" and wait.role in _PAGES else 0
    if calls and wait.role is not None:
        own = calls * page_share(seen, wait.role) / max(seen.transactions or 1, 1)
        low_us = max(low_us, wait.time_us / own if own else 0.0)
    return low_us, max(low_us, high_us)


def unknowns_of_placement(
    seen: Observation, work: WorkSummary, log: LogDemand, placed: Mapping[Role, _core.Profile]
) -> list[str]:
    """What waits leave open about a placement, as sentences: the interval contains both ends of each."""
    questions = []
    waited = [wait for wait in work.demands.waits if is_wait_off_log_device(wait) and wait.role in placed]
    unknown = [wait for wait in waited if wait.role not in seen.devices]
    if unknown:
        ends = [request_bounds_before_us(seen, work, wait) for wait in unknown]
        low_us, high_us = min(low for low, _ in ends), max(high for _, high in ends)
        names = ", ".join(dict.fromkeys(str(wait.role) for wait in unknown))
        questions.append(
            f"the device of {names} was not named: a request there is taken to last "
            f"{significant_text(low_us)} to {significant_text(high_us)} µs, which tierwise observe --on "
            "would tell"
        )
    beside = sorted(relieved_roles(work, placed))
    if beside and len(seen.devices) < len(work.footprints):
        questions.append(
            f"whether {', '.join(beside)} shares a device with what moves is not known: at best its waits end"
        )
    if Role.LOG in placed and not log.counted and log.commits:
        questions.append(
            "the server did not count its log's flushes: all transactions, or few, may wait for one"
        )
    if seen.cores is None:
        questions.append(
            "the number of the server's cores was not given: processor time is taken to have no queue, and "
            "at worst to be full"
        )
    return questions


_BUSIER = 1.1
"""Rate over the observed one from which on devices that stay are said to get more requests."""


def busier_devices_warning(
    work: WorkSummary, placed: Mapping[Role, _core.Profile], faster: float
) -> list[str]:
    """A sentence where devices that stay are asked for more than was observed: their queues are not known.

    Args:
        placed: role -> profile of its new device.
        faster: the answer's rate over that of the observed run.
    """
    waited = {wait.role for wait in work.demands.waits if wait.role not in placed}
    stay = [role for role in Role if role in waited]
    if faster < _BUSIER or not stay:
        return []
    return [
        f"the device of {', '.join(stay)} gets {faster:.3g} times the requests, which are taken to last as "
        "long as observed: a device that is nearly busy answers no more of them"
    ]
