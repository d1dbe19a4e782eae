"""Formats the fit of a solid-state disk, or of memory, as a profile."""

from __future__ import annotations

from tierwise.probe.flash_fit import FlashFit
from tierwise.probe.profile_text import Number, Origin, interval_text, profile_text, rounded

_CACHE_KIB = 65_536
_BLOCK_BYTES = 4096


def flash_text(fit: FlashFit, origin: Origin, protected: bool) -> str:
    """Profile of a solid-state disk; ``protected``: its flush need not empty its cache."""
    transfer_us = _BLOCK_BYTES / fit.link_mb_per_s
    overhead_us = max(fit.read_latency_us.estimate - fit.unit_read_us - transfer_us, 0.0)
    cached = protected or fit.write_latency_us.estimate < 0.7 * fit.program_us
    write_us = fit.write_latency_us.estimate - transfer_us - (0.0 if cached else fit.program_us)
    unit = (
        origin.source("eight readers of one block, time of each read")
        if fit.unit_seen
        else "estimated: four fifths of the measured latency, since a cache serves repeated reads"
    )
    numbers: dict[str, Number] = {
        "capacity_mb": origin.capacity(fit.span_bytes),
        "channels": (
            fit.units,
            origin.source(
                f"random 4 KiB reads a second at depth 64 ({interval_text(fit.read_iops, 0)}), "
                "the highest times read_us, corrected for idle units"
            ),
        ),
        "stripe_kib": (
            fit.stripe_kib,
            "estimated: such that all channels together read in sequence, in MB/s, at "
            f"{interval_text(fit.read_mb_per_s)}; 4 KiB at least",
        ),
        "read_us": (rounded(fit.unit_read_us), unit),
        "program_us": (
            rounded(fit.program_us),
            origin.source(
                f"channels over random 4 KiB writes a second, depth 64 ({interval_text(fit.write_iops, 0)}) "
                "on a file written whole; cleaning that begins later is not seen"
            ),
        ),
        "read_overhead_us": (
            rounded(overhead_us),
            origin.source(
                f"random 4 KiB read in us ({interval_text(fit.read_latency_us)}) less read_us and link"
            ),
        ),
        "write_overhead_us": (
            rounded(max(write_us, 0.0)),
            origin.source(f"random 4 KiB write in us ({interval_text(fit.write_latency_us)}) less link"),
        ),
        "flush_us": (rounded(fit.flush_us), origin.source("median of a flush with nothing to write")),
        "link_mb_per_s": (
            rounded(fit.link_mb_per_s),
            origin.source("highest rate of 1 MiB requests in sequence at depth 8; the link may be faster"),
        ),
        "write_cache_kib": (
            _CACHE_KIB if cached else 0,
            "estimated: 64 MiB, since writes are reported before they can be programmed; the size is not seen"
            if cached
            else "estimated: none, since a write takes as long as programming",
        ),
    }
    summary = f"measured by tierwise probe at {origin.device}: {fit.read_latency_us.estimate:.0f} us read"
    return profile_text("ssd", summary, numbers, flags={"power_loss_protection": protected and cached})


def memory_text(fit: FlashFit, origin: Origin) -> str:
    """Profile of memory behind a link."""
    transfer_us = _BLOCK_BYTES / fit.link_mb_per_s
    numbers: dict[str, Number] = {
        "capacity_mb": origin.capacity(fit.span_bytes),
        "read_latency_us": (
            rounded(max(fit.read_latency_us.estimate - transfer_us, 0.0)),
            origin.source(f"random 4 KiB read in us ({interval_text(fit.read_latency_us)}) less link"),
        ),
        "write_latency_us": (
            rounded(max(fit.write_latency_us.estimate - transfer_us, 0.0)),
            origin.source(f"random 4 KiB write in us ({interval_text(fit.write_latency_us)}) less link"),
        ),
        "flush_latency_us": (rounded(fit.flush_us), origin.source("median of a flush with nothing to write")),
        "link_mb_per_s": (
            rounded(fit.link_mb_per_s),
            origin.source("highest rate of 1 MiB requests in sequence at depth 8; the link may be faster"),
        ),
    }
    return profile_text("ram", f"measured by tierwise probe at {origin.device}", numbers)
