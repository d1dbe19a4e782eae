"""What a machine attains of an emulated device, in the same words in ``disk up``, ``disk stats``, studies."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.report import numbers
from tierwise.report.document import Block, Text, figure, table
from tierwise.results import AttainableRate, DeviceInfo, RunResult

_NOTABLE_SHARE = 0.1
_DECIDES = "Where a run needs more than that, the emulation decides its result, not the device."


def attainable_blocks(rates: Sequence[AttainableRate]) -> list[Block]:
    """Rates here beside the model's, and what follows; empty for a device that none were measured of."""
    if not rates:
        return []
    found = table([], ["depth", "here /s", "model /s"], names=["4 KiB"])
    for rate in rates:
        cells = (rate.depth, rate.here_per_s, rate.model_per_s)
        found.add(f"random {rate.op}", *(figure(cell, numbers.count) for cell in cells))
    return [found, *([] if all(rate.is_attained for rate in rates) else [Text(_DECIDES)])]


def shortfall(profile: str, rates: Sequence[AttainableRate]) -> str | None:
    """The depths at which this machine is slower than the model by more than 10 %, if there are any."""
    slower = [_slower(op, rates) for op in ("read", "write")]
    if not any(slower):
        return None
    figures = "; ".join(filter(None, slower))
    return f"This machine emulates {profile} more slowly than its model: {figures}. {_DECIDES}"


def _slower(op: str, rates: Sequence[AttainableRate]) -> str:
    each = [
        f"{numbers.count(rate.here_per_s)} of {numbers.count(rate.model_per_s)} at depth {rate.depth}"
        for rate in rates
        if rate.op == op and not rate.is_attained
    ]
    return f"random {op}s a second {', '.join(each)}" if each else ""


def path_caveats(runs: Sequence[RunResult]) -> list[str]:
    """For each emulated device: the placements in which its path took over a tenth of its requests' time."""
    slowed: dict[str, list[tuple[str, DeviceInfo]]] = {}
    for run in runs:
        for device in run.devices:
            if device.profile and device.path_share is not None and device.path_share > _NOTABLE_SHARE:
                slowed.setdefault(device.profile, []).append((run.placement, device))
    return [_path_caveat(profile, devices) for profile, devices in slowed.items()]


def _path_caveat(profile: str, devices: Sequence[tuple[str, DeviceInfo]]) -> str:
    placements = ", ".join(dict.fromkeys(placement for placement, _ in devices))
    share = numbers.percent(max(device.path_share or 0 for _, device in devices))
    return (
        f"Under {placements} up to {share} of the time of the requests to {profile} was the path of the "
        f"emulation, so that the device itself is faster than shown. "
        + (shortfall(profile, devices[-1][1].attainable) or "")
    ).strip()
