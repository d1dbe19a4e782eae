"""Power cuts and deaths of devices as sentences. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tierwise.lab.analysis.faults import CutRow, DeathRow
from tierwise.report import numbers


def sentence(row: CutRow) -> str:
    """What the cuts of one row showed: loss with its bound, damage, and the rate gained."""
    parts = [part for part in (_damage(row), _loss(row)) if part]
    gain = f", at {_ratio(row)} the rate" if row.ratio is not None else ""
    return f"{row.durability} on {row.placement}: {'; '.join(parts) or _nothing(row)}{gain}.{_warning(row)}"


def headline(rows: list[CutRow]) -> str:
    """The durable settings in one sentence; a device that lies about flushes keeps no engine's promise."""
    durable = [row for row in rows if row.durable and not row.lies]
    if not durable:
        return "No durable setting was cut on a device that obeys flushes."
    broken = [row for row in durable if row.breaks_promise]
    cuts = sum(row.cuts for row in durable)
    if broken:
        names = ", ".join(f"{row.durability} on {row.placement}" for row in broken)
        return f"Acknowledged commits were lost, or the database damaged, with a durable setting: {names}."
    text = f"No acknowledged commit was lost in {numbers.count(cuts)} power cuts with a durable setting"
    return f"{text}, on devices that obey flushes."


def bound(row: CutRow) -> str:
    """The greatest share of harmed cuts, such as ``at most 6 in 100, with 95 % confidence``."""
    return f"at most {percent_at_most(row)} in 100, with 95\u00a0% confidence"


def percent_at_most(row: CutRow) -> int:
    """That share in percent, rounded up as a bound must be."""
    return math.ceil(100 * row.at_most - 1e-9)


def lost_age(row: CutRow) -> str:
    """Age of the oldest lost commit; nothing where none was lost."""
    if row.most_lost_ms is None:
        return ""
    age = numbers.microseconds(row.most_lost_ms * 1e3)
    return f"at least {age}" if row.at_least else age


def _nothing(row: CutRow) -> str:
    return f"0 of {row.cuts} cuts lost an acknowledged commit (so {bound(row)})"


def _warning(row: CutRow) -> str:
    """Cuts without harm do not make a setting safe that its makers call unsafe."""
    return "" if row.durable or row.harmed else f" Its documentation warns: {row.promise}."


def _loss(row: CutRow) -> str:
    if not row.lost:
        return ""
    where = (
        f"the whole load, {lost_age(row)} of commits,"
        if row.at_least
        else f"up to {lost_age(row)} of commits"
    )
    return f"lost {where} in {row.lost} of {row.cuts} cuts"


def _damage(row: CutRow) -> str:
    if not row.damaged:
        return ""
    stopped = f", {row.not_started} of them beyond starting" if row.not_started else ""
    return f"{row.damaged} of {row.cuts} cuts damaged the database{stopped}"


def _ratio(row: CutRow) -> str:
    assert row.ratio is not None
    ends = numbers.ratio_span(row.ratio)
    return f"{numbers.ratio(row.ratio.estimate)} times" + (f" ({ends})" if ends else "")


def engines_of(rows: Sequence[DeathRow]) -> list[str]:
    """Engines in the order of the rows."""
    return list(dict.fromkeys(row.engine for row in rows))


def death_headline(rows: Sequence[DeathRow]) -> str:
    """For each engine: roles whose death took nothing, took commits, or needs a backup."""
    return " ".join(
        _engine_headline(name, [row for row in rows if row.engine == name]) for name in engines_of(rows)
    )


def death_sentence(row: DeathRow) -> str:
    """What the deaths of one role's device did."""
    also = f", with {', '.join(row.shared)}" if row.shared else ""
    load = {0: "", row.deaths: " Clients went on committing."}.get(
        row.ran_on, f" Clients went on committing in {row.ran_on} of {row.deaths}."
    )
    most = (
        f" At most {numbers.count(row.most_lost)} of {numbers.count(row.owed)} were gone." if row.lost else ""
    )
    return f"{row.role}{also} on {row.placement}: {row.words}.{most}{load}"


def _engine_headline(name: str, rows: Sequence[DeathRow]) -> str:
    safe = [row.role for row in rows if not (row.lost or row.damaged or row.never)]
    losing = [row.role for row in rows if row.role not in safe and not (row.damaged or row.never)]
    gone = [row.role for row in rows if row.damaged or row.never]
    parts = []
    for roles, what in (
        (safe, "takes no commit"),
        (losing, "takes commits"),
        (gone, "needs a backup"),
    ):
        if roles:
            parts.append(f"the death of {' or '.join(roles)} {what}")
    return f"{name}: {', '.join(parts)}."
