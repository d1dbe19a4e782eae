"""The advice for a fleet: its sentences, its document, and its page that opens offline."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.fleet.records import DatabaseMove, FleetAdvice, FleetDatabase, FleetRemark, FleetSharing
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.names import group_by_key, join_words
from tierwise.model.placement import ROLE_NAMES, Role
from tierwise.model.statistics import Interval
from tierwise.predict.named_devices import roles_lost_at_stop
from tierwise.report import document as doc
from tierwise.report.charts.chart_style import ChartLook, chart_of_records, finish_chart, quantitative_axis
from tierwise.report.recording.decision_words import budget_words, cost_words, money_words, price_source_texts
from tierwise.report.recording.prediction_report import caution_blocks, move_words, warning_sentence

_MOST_MOVES = 8
"""Moves that a sentence names at most."""


def fleet_move_words(move: DatabaseMove) -> str:
    """``the log of shop to ssd-nvme-dc``."""
    return f"{ROLE_NAMES[move.role]} of {move.database} to {move.device}"


def some_names(names: Sequence[str]) -> str:
    """All names, or the first few and the number of the others."""
    more = len(names) - _MOST_MOVES
    return join_words(names) if more <= 0 else f"{', '.join(names[:_MOST_MOVES])} and {more} more"


_PLURALS = {
    Role.LOG: "the logs",
    Role.DOUBLEWRITE: "the doublewrite areas",
    Role.SYSTEM: "the system files",
    Role.ARCHIVE: "the archives",
}
"""Of roles whose name for one database is not that for many."""


_LEAST_PRICE_SHARE = 0.001
"""Share of a price below which it is given in money."""


def unusable_sentences(advice: FleetAdvice) -> list[str]:
    """Which recordings are not usable, why and what to do."""
    bad = [database for database in advice.databases if database.unusable]
    if not bad:
        return []
    names = some_names([database.name for database in bad])
    first = f"Not usable, so their files stay where they are: {names}."
    return [first, *(f"{database.name}: {'; '.join(database.unusable)}." for database in bad)]


def fleet_headline(advice: FleetAdvice) -> str:
    """``Move the logs of 31 databases and the data of 4: 58 % of all that could be gained …``."""
    moved = [move for database in advice.databases for move in database.moves(database.chosen)]
    if not moved:
        limit = budget_words(advice.budget_per_month, advice.currency)
        return f"Move nothing: no move{limit} gains anything that can be told from chance."
    what = f"Move {_counted(moved)}"
    share = advice.gain_share
    if share is None:
        return f"{what}: nothing is gained, {cost_words(advice.cost_per_month, advice.currency)}."
    if advice.gain >= advice.full_gain:
        return f"{what}: all that could be gained, {cost_words(advice.cost_per_month, advice.currency)}."
    price, full = cost_words(advice.cost_per_month, advice.currency), advice.full_cost_per_month
    if full > 0 and advice.cost_per_month >= _LEAST_PRICE_SHARE * full:
        price = f"for {numbers.percent_text(advice.cost_per_month / full)} of its price"
    return f"{what}: {numbers.percent_text(share.value)} of all that could be gained, {price}."


def money_sentences(advice: FleetAdvice) -> list[str]:
    """Cost, interval of the gain, proof of the optimum, and what more money buys."""
    sentences = []
    if advice.gain_share and advice.gain < advice.full_gain:
        share = Interval(advice.gain_share.value, *advice.gain_share.interval, advice.draws)
        sentences.append(
            f"These moves cost {money_words(advice.cost_per_month, advice.currency)}; "
            f"those that gain all of it cost {money_words(advice.full_cost_per_month, advice.currency)}. "
            "Within the predictions' intervals, "
            f"the share is {numbers.percent_span(share)} (95\u00a0% of {advice.draws} draws)."
        )
        if advice.budget_per_month is None:
            sentences.append(
                "More machines gain as much as dearer moves for less, if the work can be parted: "
                "--budget allows what these cost."
            )
    sentences += [_gap_sentence(advice), _next_sentence(advice)]
    return [sentence for sentence in sentences if sentence]


def database_sentences(advice: FleetAdvice) -> list[str]:
    """Files that a restart loses, databases that miss the p99 that they must have, and those that stay."""
    lost = [
        fleet_move_words(move)
        for database in advice.databases
        for move in database.moves(database.chosen)
        if roles_lost_at_stop({move.role: move.device})
    ]
    missed = [
        f"{database.name} ({numbers.latency_text(database.must_have_p99_us)})"
        for database in advice.databases
        if database.p99_missed
    ]
    unsure = [database.name for database in advice.databases if database.option.verdict == "likely reached"]
    sentences = []
    if lost:
        sentences.append(
            "Caution: a power cut or a restart of the machine loses what is moved to memory: "
            f"{some_names(lost)}."
        )
    if missed:
        sentences.append(
            "No placement reaches the p99 that these must have, so gain alone places them: "
            f"{join_words(missed)}."
        )
    if unsure:
        sentences.append(
            f"These likely reach their p99, but a part of its interval is above: {join_words(unsure)}."
        )
    if advice.frozen:
        sentences.append(f"Frozen by the weights: {some_names(advice.frozen)}.")
    return sentences


def left_out_recordings_sentence(advice: FleetAdvice) -> str:
    """How many recordings are left out; empty if none is."""
    count = len(advice.left_out)
    return f"{count} recording{'s are' if count > 1 else ' is'} left out." if count else ""


def _counted(moves: Sequence[DatabaseMove]) -> str:
    """``the logs of 31 databases and the data of 4``; a single database is named."""
    by_role = group_by_key((move.role, move.database) for move in moves)
    ordered = sorted(by_role.items(), key=lambda pair: (-len(pair[1]), list(Role).index(pair[0])))
    counted = [
        f"{_PLURALS.get(role, ROLE_NAMES[role])} of {len(names)}" for role, names in ordered if len(names) > 1
    ]
    named = group_by_key((name, ROLE_NAMES[role]) for role, (name, *others) in ordered if not others)
    first = [f"{count_words} databases" for count_words in counted[:1]]
    return join_words(
        [*first, *counted[1:], *(f"{join_words(files)} of {name}" for name, files in named.items())]
    )


def _gap_sentence(advice: FleetAdvice) -> str:
    if advice.gap == 0:
        return "No other set of these options gains more for the money: optimality gap 0\u00a0%."
    return (
        f"Optimality gap {numbers.percent_text(advice.gap)}: another set may gain that much more, as the "
        "search "
        "ended at its time limit."
    )


def _next_sentence(advice: FleetAdvice) -> str:
    after = advice.next
    if after is None:
        return ""
    more = money_words(after.more_per_month, advice.currency)
    if not after.begun and not after.ended:
        return f"The next {more} buy nothing."
    begun = f": {some_names([fleet_move_words(move) for move in after.begun])}" if after.begun else ""
    ended = (
        f"; no longer {some_names([fleet_move_words(move) for move in after.ended])}" if after.ended else ""
    )
    return f"The next {more} buy a further {numbers.percent_text(after.gain_share)}{begun}{ended}."


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
    saved, costs = (
        money_words(each, advice.currency) for each in (sharing.saved_per_month, sharing.cost_per_month)
    )
    share = sharing.gain_share
    gained = (
        f" and gains {numbers.percent_text(share)} of all that could be gained" if share is not None else ""
    )
    return (
        f"{count} shared {hold} the logs of {logs} databases. This saves {saved} over a device for each. "
        f"The set with sharing costs {costs}{gained}."
    )


def sharing_blocks(advice: FleetAdvice) -> list[doc.Block]:
    """What shares which device, at what loss, for what money; which logs share none; the risk."""
    sharing = advice.sharing
    if sharing is None:
        return []
    unit = numbers.per_month_unit(advice.currency)
    tables = [_devices(sharing, unit), _logs(sharing)] if sharing.devices else []
    return [
        *doc.paragraphs(_changes(sharing)),
        *tables,
        *([_separate(sharing)] if sharing.separate else []),
        *doc.paragraphs(_risks(sharing), doc.Tone.WARNING),
        doc.Text(
            f"Each database keeps {numbers.percent_text(sharing.least_kept)} of its rate or more, and surely "
            "reaches the p99 that it must have. The range of what it keeps is that of the seeds; the error "
            f"of the model is not in it. Joint replays: {sharing.replays}. Other sections describe the set "
            "without sharing.",
            doc.Tone.QUIET,
        ),
    ]


def _changes(sharing: FleetSharing) -> list[str]:
    said = {
        "Further moves at the shared price": sharing.begun,
        "Moves that no longer belong to the set": sharing.ended,
    }
    return [
        f"{what}: {some_names(list(map(fleet_move_words, moves)))}." for what, moves in said.items() if moves
    ]


def _devices(sharing: FleetSharing, unit: str) -> doc.Table:
    devices_table = doc.empty_table(["databases"], [f"{unit}\nshared", "separate", "saved"], names=["device"])
    for device in sharing.devices:
        money_cells = [
            doc.Cell(numbers.amount_text(value), value=value)
            for value in (device.cost_per_month, device.separate_cost_per_month, device.saved_per_month)
        ]
        devices_table.add(device.name, ", ".join(log.database for log in device.databases), *money_cells)
    return devices_table


def _logs(sharing: FleetSharing) -> doc.Table:
    logs_table = doc.empty_table(
        ["roles"],
        ["rate/s\nalone", "shared", "kept", "p99\nalone", "p99\nshared"],
        names=["database", "device"],
    )
    for device in sharing.devices:
        for log in device.databases:
            logs_table.add(
                log.database,
                device.name,
                join_words(log.roles),
                doc.estimate_cell(log.rate_alone_per_s, numbers.significant_text),
                doc.estimate_cell(log.rate_per_s, numbers.significant_text),
                doc.estimate_cell(log.kept, numbers.percent_text),
                doc.estimate_cell(log.p99_alone_us, numbers.latency_text),
                doc.estimate_cell(log.p99_us, numbers.latency_text),
            )
    return logs_table


def _separate(sharing: FleetSharing) -> doc.Table:
    separate_table = doc.empty_table(["why the log shares none"], [], names=["database", "device"])
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


_CURVE_PX = 300
_GAIN = (
    "The gain of a database is the share of the time of a transaction that a placement saves, times its "
    "importance. The ring is the budget."
)


def budget_curve_figure(advice: FleetAdvice) -> doc.Chart:
    """A point for each budget, at the cost of its best set, and a ring for the budget that was asked."""
    points = [
        f"{money_words(one.budget_per_month, advice.currency)}: {numbers.percent_text(one.gain_share)}"
        for one in advice.curve
    ]
    description = f"Gain against budget. {'; '.join(points)}."
    return doc.Chart("curve", description, lambda look: _curve(advice, look), _GAIN)


def _curve(advice: FleetAdvice, look: ChartLook) -> alt.LayerChart:
    unit = numbers.per_month_unit(advice.currency)
    x = alt.X(
        "cost:Q",
        scale=alt.Scale(nice=True),
        axis=quantitative_axis(f"cost ({unit})", tickCount=4 if look.narrow else 8),
    )
    y = alt.Y(
        "gain:Q",
        scale=alt.Scale(domain=[0, 100]),
        axis=quantitative_axis("% of all that could be gained", tickCount=5),
    )
    spent = [
        {
            "cost": one.cost_per_month,
            "gain": 100 * one.gain_share,
            "asked": one.budget_per_month == advice.budget_per_month,
        }
        for one in advice.curve
    ]
    base = chart_of_records(spent).encode(x=x, y=y)
    colour = look.colour("place-1")
    layers = [
        base.mark_line(strokeWidth=1.5, opacity=0.55, interpolate="step-after", color=colour),
        base.mark_point(filled=True, size=60, opacity=1, color=colour),
        base.transform_filter("datum.asked").mark_point(
            size=260, strokeWidth=2, color=look.colour("place-2")
        ),
    ]
    return finish_chart(layers, look, _CURVE_PX, "Gain against cost", right_px=24)


_LEAST_SHARE = 0.05
"""Share of the draws from which a move outside the best set is listed."""
_MOST_NAMED = 3


def fleet_document(advice: FleetAdvice) -> list[doc.Block]:
    """The answer in sentences, then databases, moves, the curve, what is left out, prices and warnings."""
    budget = doc.Section("Gain against budget", [budget_curve_table(advice)])
    return [*fleet_answer_texts(advice), *fleet_sections(advice), budget, *remark_blocks(advice)]


def fleet_answer_texts(advice: FleetAdvice) -> list[doc.Block]:
    """Recordings that are not usable, the main sentence, money, and databases with something to say of."""
    return [
        *doc.paragraphs(unusable_sentences(advice)[:1], doc.Tone.HEADLINE),
        *doc.paragraphs(unusable_sentences(advice)[1:], doc.Tone.WARNING),
        doc.Text(fleet_headline(advice), doc.Tone.HEADLINE),
        *doc.paragraphs([*money_sentences(advice), sharing_sentence(advice)]),
        *doc.paragraphs(
            [*database_sentences(advice), left_out_recordings_sentence(advice)], doc.Tone.WARNING
        ),
    ]


def fleet_sections(advice: FleetAdvice) -> list[doc.Block]:
    """Databases, shared devices, moves, and what is left out."""
    made = (
        ("Databases", "databases", [database_table(advice)]),
        ("Shared devices", "shared", sharing_blocks(advice)),
        ("How sure each move is", "moves", move_blocks(advice)),
        ("Left out", "left-out", left_out_recording_blocks(advice)),
    )
    return [doc.Section(title, blocks, id=name) for title, name, blocks in made if blocks]


def database_table(advice: FleetAdvice) -> doc.Table:
    """One row for each database, those that gain most first."""
    figures = ["times\nfaster", "importance", "p99", numbers.per_month_unit(advice.currency)]
    databases = doc.empty_table(["moves"], figures, names=["database"])
    for database in sorted(
        advice.databases, key=lambda database: -database.importance * database.option.gain
    ):
        option = database.option
        tone = doc.Tone.PLAIN if option.placement else doc.Tone.QUIET
        databases.add(
            database.name,
            doc.Cell(_moves(database), tone),
            doc.estimate_cell(option.speedup if option.placement else None, numbers.ratio_text),
            doc.figure_cell(database.importance, numbers.paper_figure_text),
            doc.estimate_cell(option.p99_us, numbers.latency_text),
            doc.figure_cell(option.cost_per_month, numbers.amount_text),
        )
    return databases


def move_blocks(advice: FleetAdvice) -> list[doc.Block]:
    """How often each move is in the best set, those outside it last; nothing without a move."""
    if not advice.moves:
        return []
    move_table = doc.empty_table([], ["in the\nbest set"], names=["database", "role", "device", "advised"])
    shown = [move for move in advice.moves if move.chosen or move.draws_share >= _LEAST_SHARE]
    for move in shown:
        share = doc.Cell(numbers.percent_text(move.draws_share), value=move.draws_share)
        advised = "yes" if move.chosen else "no"
        move_table.add(
            move.database,
            move.role,
            move.device,
            advised,
            share,
            tone=doc.Tone.PLAIN if move.chosen else doc.Tone.QUIET,
        )
    text = (
        f"Share of {advice.draws} draws of all speed-ups from their intervals (seed {advice.seed}) in which "
        "the best set has the move."
    )
    return [move_table, doc.Text(text, doc.Tone.QUIET)]


def budget_curve_table(advice: FleetAdvice) -> doc.Table:
    """The best set for other budgets; that of the asked budget is marked."""
    unit = numbers.per_month_unit(advice.currency)
    curves = doc.empty_table([], [f"budget\n{unit}", f"cost\n{unit}", "gain"])
    for point in advice.curve:
        tone = doc.Tone.HEADLINE if point.budget_per_month == advice.budget_per_month else doc.Tone.PLAIN
        curves.add(
            doc.Cell(numbers.amount_text(point.budget_per_month), tone, value=point.budget_per_month),
            doc.Cell(numbers.amount_text(point.cost_per_month), tone, value=point.cost_per_month),
            doc.Cell(numbers.percent_text(point.gain_share), tone, value=point.gain_share),
        )
    return curves


def left_out_recording_blocks(advice: FleetAdvice) -> list[doc.Block]:
    """Each recording that could not be used, with the reason and the fix."""
    if not advice.left_out:
        return []
    left_out_table = doc.empty_table(["reason", "what to do"], [], names=["recording"])
    for recording in advice.left_out:
        left_out_table.add(recording.name, recording.problem, recording.fix)
    return [left_out_table]


def remark_blocks(advice: FleetAdvice) -> list[doc.Block]:
    """Prices, notes and warnings; each names its databases. Warnings of the most databases are in sight."""
    warnings = sorted(advice.warnings, key=lambda warning: -len(warning.databases))
    return [
        *price_source_texts(advice.prices),
        *doc.paragraphs([f"Note, {_whose(note, advice)}: {note.text.rstrip('.')}." for note in advice.notes]),
        *caution_blocks(warning_sentence(warning.text, _whose(warning, advice)) for warning in warnings),
    ]


def _whose(remark: FleetRemark, advice: FleetAdvice) -> str:
    count = len(remark.databases)
    if 1 < count == len(advice.databases):
        return "all databases"
    return ", ".join(remark.databases) if count <= _MOST_NAMED else f"{count} databases"


def _moves(fleet_database: FleetDatabase) -> str:
    if not fleet_database.option.placement:
        return "as recorded"
    along = (
        f"; {move_words(fleet_database.option.taken_along)} too" if fleet_database.option.taken_along else ""
    )
    return f"{move_words(fleet_database.option.placement)}{along}"


_FOOTER = "Intervals are 95\u00a0% intervals of predictions. Nothing is measured on the new devices."


def fleet_page(advice: FleetAdvice) -> doc.Page:
    """The answer first, then money, databases, moves, what is left out, and the basis."""
    count = len(advice.databases)
    folded = doc.Section("The same as a table", [budget_curve_table(advice)], folded=True)
    return doc.Page(
        title=f"advice for {numbers.counted_noun(count, 'database')}",
        header=fleet_answer_texts(advice),
        body=[
            doc.Section("Gain against budget", [budget_curve_figure(advice), folded], id="budget"),
            *fleet_sections(advice),
            doc.Section("Prices, notes and warnings", remark_blocks(advice), id="basis"),
        ],
        footer=_FOOTER,
    )
