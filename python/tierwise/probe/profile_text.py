"""Formats a measured profile, with the source of each number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tierwise.model.statistics import Interval

MB = 1_000_000

Scalar = float | int | bool | str
Table = Mapping[str, Scalar]
Number = tuple[Scalar, str]
"""A value and its source."""


@dataclass(frozen=True)
class Origin:
    """Place and method of the measurement; every source begins with them."""

    date: str
    host: str
    kernel: str
    path: str
    device: str
    """The path and the layers below it."""
    repeats: int
    capacity_bytes: int
    """Size of the file system or device; the probed span may be smaller."""

    def source(self, what: str) -> str:
        """The source of one number."""
        return (
            f"measured: tierwise probe of {self.path} on {self.date}, host {self.host}, Linux {self.kernel}, "
            f"{self.repeats} repeats: {what}"
        )

    def capacity(self, span_bytes: int) -> Number:
        """The capacity of the file system or device, with ``span_bytes`` probed."""
        return self.capacity_bytes // MB, self.source(f"its size; {span_bytes // MB:,} MB of it were probed")


def interval_text(interval: Interval, digits: int = 1) -> str:
    """A median with its interval."""
    median = f"median {interval.estimate:.{digits}f}"
    if interval.low is None or interval.high is None:
        return median
    return f"{median}, 95 % interval {interval.low:.{digits}f} to {interval.high:.{digits}f}"


def rounded(number: float) -> float:
    """Round to four significant digits: no measurement here is more precise."""
    return float(f"{number:.4g}")


def profile_text(
    kind: str,
    summary: str,
    numbers: Mapping[str, Number],
    *,
    flags: Table | None = None,
    zones: list[Table] | None = None,
    tables: Mapping[str, Table] | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """TOML of a profile.

    Args:
        kind: ``hdd``, ``ssd`` or ``ram``.
        summary: one line for display.
        numbers: top-level numbers, each with its source.
        flags: top-level flags, which need no source.
        zones: the list of that name.
        tables: further tables.
        sources: of zones and tables, by key.
    """
    top: dict[str, Scalar] = {"kind": kind, "summary": summary}
    top |= {key: value for key, (value, _) in numbers.items()} | dict(flags or {})
    lines = ["# Written by tierwise probe.", *_assignments(top)]
    if zones:
        lines += ["zones = [", *(f"  {{ {', '.join(_assignments(zone))} }}," for zone in zones), "]"]
    for name, table in (tables or {}).items():
        lines += ["", f"[{name}]", *_assignments(table)]
    texts = {key: source for key, (_, source) in numbers.items()} | dict(sources or {})
    quoted = {json.dumps(key) if "." in key else key: text for key, text in texts.items()}
    return "\n".join([*lines, "", "[source]", *_assignments(quoted), ""])


def _assignments(table: Table) -> list[str]:
    """``json`` writes strings, numbers and booleans as TOML does."""
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
