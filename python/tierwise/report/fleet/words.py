"""The advice for a fleet in sentences: its moves, and its shared devices."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.fleet.records import DatabaseMove, FleetAdvice, FleetSharing
from tierwise.model.placement import Role
from tierwise.model.statistics import Interval
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, table, texts
from tierwise.report.moves import ROLE_NAMES, join
from tierwise.report.recording.money_words import amount_words, cost, money

_MOST_NAMED = 8
"""Moves that a sentence names at most."""


def in_words(move: DatabaseMove) -> str:
    """``the log of shop to ssd-nvme-dc``."""
    return f"{ROLE_NAMES[move.role]} of {move.database} to {move.device}"


def some(names: Sequence[str]) -> str:
    """All names, or the first few and the number of the others."""
    more = len(names) - _MOST_NAMED
    return join(names) if more <= 0 else f"{', '.join(names[:_MOST_NAMED])} and {more} more"


_PLURALS = {
    Role.LOG: "the logs",
    Role.DOUBLEWRITE: "the doublewrite areas",
    Role.SYSTEM: "the system files",
    Role.ARCHIVE: "the archives",
}
"""Of roles whose name for one database is not that for many."""


def unusable_sentences(advice: FleetAdvice) -> list[str]:
    """Which recordings are not usable, why and what to do."""
    bad = [database for database in advice.databases if database.unusable]
    if not bad:
        return []
    first = f"Not usable, so do not act on what is said of them: {some([database.name for database in bad])}."
    return [first, *(f"{database.name}: {'; '.join(database.unusable)}." for database in bad)]


def headline(advice: FleetAdvice) -> str:
    """``Move the logs of 31 databases and the data of 4: 58 % of all that could be gained …``."""
    moved = [move for database in advice.databases for move in database.moves(database.chosen)]
    if not moved:
        return f"Move nothing: no move{_limit(advice)} gains anything that can be told from chance."
    what = f"Move {_counted(moved)}"
    share = advice.gain_share
    if share is None:
        return f"{what}: nothing is gained, {cost(advice.cost_per_month, advice.currency)}."
    if advice.gain >= advice.full_gain:
        return f"{what}: all that could be gained, {cost(advice.cost_per_month, advice.currency)}."
    if advice.cost_per_month <= 0 or advice.full_cost_per_month <= 0:
        price = cost(advice.cost_per_month, advice.currency)
    else:
        price = f"for {numbers.percent(advice.cost_per_month / advice.full_cost_per_month)} of its price"
    return f"{what}: {numbers.percent(share.value)} of all that could be gained, {price}."


def money_sentences(advice: FleetAdvice) -> list[str]:
    """Cost, interval of the gain, proof of the optimum, and what more money buys."""
    sentences = []
    if advice.gain_share and advice.gain < advice.full_gain:
        share = Interval(advice.gain_share.value, *advice.gain_share.interval, advice.draws)
        sentences.append(
            f"These moves cost {money(advice.cost_per_month, advice.currency)}; those that gain all of it "
            f"cost {money(advice.full_cost_per_month, advice.currency)}. Within the predictions' intervals, "
            f"the share is {numbers.percent_span(share)} (95\u00a0% of {advice.draws} draws)."
        )
    sentences += [_gap_sentence(advice), _next_sentence(advice)]
    return [sentence for sentence in sentences if sentence]


def database_sentences(advice: FleetAdvice) -> list[str]:
    """Databases that do not get the p99 that they must have, and those that stay as they are."""
    missed = [
        f"{database.name} ({numbers.microseconds(database.must_have_p99_us)})"
        for database in advice.databases
        if database.p99_missed
    ]
    unsure = [database.name for database in advice.databases if database.option.verdict == "likely reached"]
    sentences = []
    if missed:
        sentences.append(
            f"No placement reaches the p99 that these must have, so gain alone places them: {join(missed)}."
        )
    if unsure:
        sentences.append(
            f"These likely reach their p99, but a part of its interval is above: {join(unsure)}."
        )
    if advice.frozen:
        sentences.append(f"Frozen by the weights: {some(advice.frozen)}.")
    return sentences


def left_out_sentence(advice: FleetAdvice) -> str:
    """How many recordings are left out; empty if none is."""
    count = len(advice.left_out)
    return f"{count} recording{'s are' if count > 1 else ' is'} left out." if count else ""


def _counted(moves: Sequence[DatabaseMove]) -> str:
    """``the logs of 31 databases and the data of 4``; a single database is named."""
    by_role: dict[Role, list[str]] = {}
    for move in moves:
        by_role.setdefault(move.role, []).append(move.database)
    ordered = sorted(by_role.items(), key=lambda pair: (-len(pair[1]), list(Role).index(pair[0])))
    counted = [
        f"{_PLURALS.get(role, ROLE_NAMES[role])} of {len(names)}" for role, names in ordered if len(names) > 1
    ]
    named: dict[str, list[str]] = {}
    for role, (name, *others) in ordered:
        if not others:
            named.setdefault(name, []).append(ROLE_NAMES[role])
    first = [f"{count_words} databases" for count_words in counted[:1]]
    return join([*first, *counted[1:], *(f"{join(files)} of {name}" for name, files in named.items())])


def _gap_sentence(advice: FleetAdvice) -> str:
    if advice.gap == 0:
        return "No other set of these options gains more for the money: optimality gap 0\u00a0%."
    return (
        f"Optimality gap {numbers.percent(advice.gap)}: another set may gain that much more, as the search "
        "ended at its time limit."
    )


def _next_sentence(advice: FleetAdvice) -> str:
    after = advice.next
    if after is None:
        return ""
    more = money(after.more_per_month, advice.currency)
    if not after.begun and not after.ended:
        return f"The next {more} buy nothing."
    begun = f": {some([in_words(move) for move in after.begun])}" if after.begun else ""
    ended = f"; no longer {some([in_words(move) for move in after.ended])}" if after.ended else ""
    return f"The next {more} buy a further {numbers.percent(after.gain_share)}{begun}{ended}."


def _limit(advice: FleetAdvice) -> str:
    if advice.budget_per_month is None:
        return ""
    return f" for {money(advice.budget_per_month, advice.currency)} or less"


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
    sentences = []
    if sharing.begun:
        sentences.append(f"Further moves at the shared price: {_moves(sharing.begun)}.")
    if sharing.ended:
        sentences.append(f"Moves that no longer belong to the set: {_moves(sharing.ended)}.")
    return sentences


def _moves(moves: list[DatabaseMove]) -> str:
    return some([in_words(move) for move in moves])


def _devices(sharing: FleetSharing, unit: str) -> Table:
    devices_table = table(["databases"], [f"{unit}\nshared", "separate", "saved"], names=["device"])
    for device in sharing.devices:
        money_cells = [
            Cell(amount_words(value), value=value)
            for value in (device.cost_per_month, device.separate_cost_per_month, device.saved_per_month)
        ]
        devices_table.add(device.name, ", ".join(log.database for log in device.databases), *money_cells)
    return devices_table


def _logs(sharing: FleetSharing) -> Table:
    logs_table = table(
        ["roles"],
        ["rate/s\nalone", "shared", "kept", "p99\nalone", "p99\nshared"],
        names=["database", "device"],
    )
    for device in sharing.devices:
        for log in device.databases:
            logs_table.add(
                log.database,
                device.name,
                join(log.roles),
                estimate(log.rate_alone_per_s, numbers.significant),
                estimate(log.rate_per_s, numbers.significant),
                estimate(log.kept, numbers.percent),
                estimate(log.p99_alone_us, numbers.microseconds),
                estimate(log.p99_us, numbers.microseconds),
            )
    return logs_table


def _separate(sharing: FleetSharing) -> Table:
    separate_table = table(["why the log shares none"], [], names=["database", "device"])
    for log in sharing.separate:
        separate_table.add(log.database, log.device, log.reason)
    return separate_table


def _risks(sharing: FleetSharing) -> list[str]:
    if not sharing.devices:
        return []
    most = max(len(device.databases) for device in sharing.devices)
    sentences = [
        f"If a shared device fails, all of its databases lose their logs at once, up to {most} here. "
        "Mirror it, or share less with --share-most.",
        "The replay adds no latency for a network: all databases of a device run on its host, or reach it "
        "as fast as a local one.",
    ]
    if most > VALIDATED_MOST:
        sentences.append(
            f"Joint predictions were measured with {VALIDATED_MOST} databases on a device at most, not "
            f"with {most}."
        )
    return sentences
