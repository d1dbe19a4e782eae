"""Another size of memory: its assumptions, and the uncertainty from reads that the recording leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tierwise.predict.replayed import WorkSummary
from tierwise.predict.scenario import Scenario
from tierwise.predict.uncertainty import Uncertainty

LIKELY = "likely"
"""The simulator's default assumption about reads that another memory size may or may not answer."""
_BOUNDS = ("fewest", "most")
"""Its extreme assumptions: all of these reads are answered, or none."""
_LEAST_UNSURE = 0.005
"""Half width up to which it is ignored."""
_UNEXPLAINED = 0.05
"""Share of unexplained reads above which the page cache is said to differ from the model's."""
_OTHERWISE = 0.1
"""Half width for that difference."""
_MIB = 1 << 20


def bounds(scenario: Scenario, work: WorkSummary) -> Sequence[str]:
    """Further assumptions about open reads that a scenario is simulated with."""
    return _BOUNDS if _is_other(scenario, work) else ()


def widen(
    scenario: Scenario, work: WorkSummary, rates: Sequence[float], likely: float, uncertainty: Uncertainty
) -> None:
    """Add the assumptions about memory as warnings, and widen the interval by the distance of the bounds."""
    if not _is_other(scenario, work) or scenario.memory_bytes is None:
        return
    cache = work.page_cache
    if cache.engine_bytes:
        kept = f"the engine's own buffer stays at {cache.engine_bytes / _MIB:,.0f} MiB"
        if cache.passed:
            uncertainty.warnings.append(
                f"{kept} and its files are read past the page cache: other memory changes little"
            )
        else:
            uncertainty.warnings.append(f"{kept}: the page cache alone is of another size")
    if cache.unexplained > _UNEXPLAINED:
        uncertainty.widen(
            _OTHERWISE,
            f"{cache.unexplained:.0%} of the reads were answered otherwise than by a cache that drops "
            "what was unused for longest",
        )
    if scenario.memory_bytes > work.memory_bytes and work.demands.reads:
        uncertainty.warnings.append(
            "a read that memory answers also takes less processor time, and the recording does not tell how "
            "much: where memory comes to hold all that is read, the rate can be several times higher"
        )
    apart = _apart(rates, likely)
    if apart > _LEAST_UNSURE:
        uncertainty.half_widths.append(apart)
        uncertainty.warnings.append(
            f"of some reads the recording does not tell whether {scenario.memory_bytes / _MIB:,.0f} MiB of "
            "memory answer them: the interval holds that all or none are answered"
        )


def _is_other(scenario: Scenario, work: WorkSummary) -> bool:
    return scenario.memory_bytes not in (None, work.memory_bytes)


def _apart(rates: Sequence[float], likely: float) -> float:
    """How far the furthest rate lies from the likely one, on the logarithm."""
    if likely <= 0 or not rates:
        return 0.0
    return max(abs(math.log(rate / likely)) if rate > 0 else math.inf for rate in rates)
