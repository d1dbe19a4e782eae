"""Shared devices of a fleet: sentences and tables."""

from __future__ import annotations

from tierwise.fleet import DatabaseMove, FleetAdvice, FleetSharing
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, table, texts
from tierwise.report.fleet.names import in_words, some
from tierwise.report.recording.money_words import figure as amount
from tierwise.report.recording.money_words import money
from tierwise.report.study.moves import join

VALIDATED_MOST = 4
"""Most databases on one device whose joint predictions were measured (docs/evidence/shared-devices.md)."""


def sharing_sentence(advice: FleetAdvice) -> str:
    """``2 shared devices hold the logs of 7 databases …``; empty if sharing was not asked for."""
    sharing = advice.sharing
    if sharing is None:
        return ""
    if not sharing.devices:
        return "No log can share a device: Shared devices below has the reasons."
    count = len(sharing.devices)
    logs = sum(len(device.databases) for device in sharing.devices)
    hold = "devices hold" if count > 1 else "device holds"
    saved = money(sharing.saved_per_month, advice.currency)
    return (
        f"{count} shared {hold} the logs of {logs} databases. This saves {saved} over a device for each."
        f"{_set_words(sharing, advice)}"
    )


def sharing_blocks(advice: FleetAdvice) -> list[Block]:
    """What shares which device, at what loss, for what money; which logs share none; the risk."""
    sharing = advice.sharing
    if sharing is None:
        return []
    unit = f"{SYMBOLS.get(advice.currency, advice.currency)}/month"
    tables = [_devices(sharing, unit), _logs(sharing)] if sharing.devices else []
    return [
        *texts(_changes(sharing)),
        *tables,
        *([_separate(sharing)] if sharing.separate else []),
        *texts(_risks(sharing), Tone.WARNING),
        Text(
            f"Each database keeps {numbers.percent(sharing.least_kept)} of its rate or more, and surely "
            "reaches the p99 that it must have. The range of what it keeps is that of the seeds; the error "
            f"of the model is not in it. Joint replays: {sharing.replays}. Other sections describe the set "
            "without sharing.",
            Tone.QUIET,
        ),
    ]


def _set_words(sharing: FleetSharing, advice: FleetAdvice) -> str:
    share = sharing.gain_share
    gained = f" and gains {numbers.percent(share)} of all that could be gained" if share is not None else ""
    return f" The set with sharing costs {money(sharing.cost_per_month, advice.currency)}{gained}."


def _changes(sharing: FleetSharing) -> list[str]:
    said = []
    if sharing.begun:
        said.append(f"Further moves at the shared price: {_moves(sharing.begun)}.")
    if sharing.ended:
        said.append(f"Moves that no longer belong to the set: {_moves(sharing.ended)}.")
    return said


def _moves(moves: list[DatabaseMove]) -> str:
    return some([in_words(move) for move in moves])


def _devices(sharing: FleetSharing, unit: str) -> Table:
    found = table(["databases"], [f"{unit}\nshared", "separate", "saved"], names=["device"])
    for one in sharing.devices:
        money_cells = [
            Cell(amount(value), value=value)
            for value in (one.cost_per_month, one.separate_cost_per_month, one.saved_per_month)
        ]
        found.add(one.name, ", ".join(log.database for log in one.databases), *money_cells)
    return found


def _logs(sharing: FleetSharing) -> Table:
    found = table(
        ["roles"],
        ["rate/s\nalone", "shared", "kept", "p99\nalone", "p99\nshared"],
        names=["database", "device"],
    )
    for one in sharing.devices:
        for log in one.databases:
            found.add(
                log.database,
                one.name,
                join(log.roles),
                estimate(log.rate_alone_per_s, numbers.significant),
                estimate(log.rate_per_s, numbers.significant),
                estimate(log.kept, numbers.percent),
                estimate(log.p99_alone_us, numbers.microseconds),
                estimate(log.p99_us, numbers.microseconds),
            )
    return found


def _separate(sharing: FleetSharing) -> Table:
    found = table(["why the log shares none"], [], names=["database", "device"])
    for one in sharing.separate:
        found.add(one.database, one.device, one.reason)
    return found


def _risks(sharing: FleetSharing) -> list[str]:
    if not sharing.devices:
        return []
    most = max(len(one.databases) for one in sharing.devices)
    said = [
        f"If a shared device fails, all of its databases lose their logs at once, up to {most} here. "
        "Mirror it, or share less with --share-most.",
        "The replay adds no latency for a network: all databases of a device run on its host, or reach it "
        "as fast as a local one.",
    ]
    if most > VALIDATED_MOST:
        said.append(
            f"Joint predictions were measured with {VALIDATED_MOST} databases on a device at most, not "
            f"with {most}."
        )
    return said
