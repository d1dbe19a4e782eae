"""The text of a profile that was measured, with where each number comes from."""

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
    """Where and how it was measured: what every source begins with."""

    date: str
    host: str
    kernel: str
    path: str
    device: str
    """The path with what it stands on."""
    repeats: int
    capacity_bytes: int
    """Of the file system or device, of which less may have been probed."""

    def source(self, what: str) -> str:
        """The source of one number."""
        return (
            f"measured: tierwise probe of {self.path} on {self.date}, host {self.host}, Linux {self.kernel}, "
            f"{self.repeats} repeats: {what}"
        )

    def capacity(self, span_bytes: int) -> Number:
        """The capacity of the file system or device, of which so much was probed."""
        return self.capacity_bytes // MB, self.source(f"its size; {span_bytes // MB:,} MB of it were probed")


def interval_text(interval: Interval, digits: int = 1) -> str:
    """A median with its interval."""
    median = f"median {interval.estimate:.{digits}f}"
    if interval.low is None or interval.high is None:
        return median
    return f"{median}, 95 % interval {interval.low:.{digits}f} to {interval.high:.{digits}f}"


def rounded(number: float) -> float:
    """Four significant digits: no measurement here is better."""
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
        summary: one line for people.
        numbers: of the top level, each with its source.
        flags: of the top level, which need none.
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
    """``json`` writes texts, numbers and truth values as TOML does."""
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
