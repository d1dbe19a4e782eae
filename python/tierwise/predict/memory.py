"""Other sizes of memory or of the engine's buffer: assumptions, and reads that the recording leaves open."""

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
    return _BOUNDS if _other_memory(scenario, work) or _other_buffer(scenario, work) else ()


def widen(
    scenario: Scenario, work: WorkSummary, rates: Sequence[float], likely: float, uncertainty: Uncertainty
) -> None:
    """Add the assumptions about memory as warnings, and widen the interval by the distance of the bounds."""
    if not bounds(scenario, work):
        return
    cache = work.page_cache
    if cache.engine_bytes and not _other_buffer(scenario, work):
        kept = f"the engine's own buffer stays at {cache.engine_bytes / _MIB:,.0f} MiB"
        if cache.passed:
            uncertainty.warnings.append(
                f"{kept} and its files are read past the page cache: other memory changes little"
            )
        else:
            uncertainty.warnings.append(f"{kept}: the page cache alone is of another size")
    if cache.unexplained > _UNEXPLAINED and not cache.passed:
        uncertainty.widen(
            _OTHERWISE,
            f"{cache.unexplained:.0%} of the reads were answered otherwise than by a cache that drops "
            "what was unused for longest",
        )
    apart = _apart(rates, likely)
    if apart > _LEAST_UNSURE:
        uncertainty.half_widths.append(apart)
        uncertainty.warnings.append(
            "the recording does not tell of some reads whether that much memory answers them: the interval "
            "holds that all or none are answered"
        )


def _other_memory(scenario: Scenario, work: WorkSummary) -> bool:
    return scenario.memory_bytes not in (None, work.memory_bytes)


def _other_buffer(scenario: Scenario, work: WorkSummary) -> bool:
    return scenario.buffer_bytes not in (None, work.page_cache.engine_bytes)


def _apart(rates: Sequence[float], likely: float) -> float:
    """How far the furthest rate lies from the likely one, on the logarithm."""
    if likely <= 0 or not rates:
        return 0.0
    return max(abs(math.log(rate / likely)) if rate > 0 else math.inf for rate in rates)
