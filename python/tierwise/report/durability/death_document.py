"""The answer to "what survives the death of a device?": a table and sentences for each engine. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.report import numbers
from tierwise.report.document import Block, Bullets, Cell, Section, Table, Tone, figure, table, texts
from tierwise.report.durability.deaths import DeathRow


def death_blocks(rows: Sequence[DeathRow]) -> list[Block]:
    """For each engine its table, its sentences, and what its messages said."""
    return [_engine(name, [row for row in rows if row.engine == name]) for name in engines_of(rows)]


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


def death_table(rows: Sequence[DeathRow]) -> Table:
    """One row for each role."""
    counted = ["deaths", "as\nit is", "after\na step", "never", "lost", "most\nlost", "damaged"]
    found = table(["role"], [*counted, "load\nran on", "start"])
    for row in rows:
        worst = row.most_lost / row.owed if row.lost else None
        found.add(
            Cell(row.role, Tone.WORSE if row.never or row.damaged else Tone.PLAIN),
            figure(row.deaths, numbers.count),
            figure(row.as_is, numbers.count),
            figure(row.salvaged, numbers.count),
            figure(row.never, numbers.count),
            figure(row.lost, numbers.count),
            figure(worst, numbers.percent),
            figure(row.damaged, numbers.count),
            figure(row.ran_on, numbers.count),
            figure(row.recovery_s, numbers.seconds),
        )
    return found


def _engine(name: str, rows: Sequence[DeathRow]) -> Section:
    messages = [f"{row.role}, started as it is: {row.refused}" for row in rows if row.refused]
    messages += [
        f"{row.role}, afterwards: {row.damage}" for row in rows if row.damage and row.damage != row.refused
    ]
    early = dict.fromkeys(problem for row in rows for problem in row.problems)
    blocks = [
        death_table(rows),
        Bullets([death_sentence(row) for row in rows]),
        *texts(messages, Tone.QUIET),
        *texts(early, Tone.WARNING),
    ]
    return Section(name, blocks, id=f"deaths-{name}")


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
