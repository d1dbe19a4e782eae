"""Settings instead of a move, as a table and in words."""

from __future__ import annotations

from tierwise.advise import Advice
from tierwise.advise.alternatives import MeasuredHarm, SettingMove
from tierwise.model.names import capitalized
from tierwise.predict.answer import SETTINGS_UNCALIBRATED
from tierwise.report import numbers
from tierwise.report.document import Block, Bullets, Cell, Column, ColumnKind, Table, Text, Tone, figure
from tierwise.report.recording.prediction import gain_cells, gain_headings

TITLE = "Settings instead"
_CAUTION = (
    "A setting costs nothing, and most give up durability: none is recommended unless --may-lose allows it."
)


def setting_blocks(advice: Advice, titled: bool = True) -> list[Block]:
    """Each setting with its gain and what may be lost, then how to set it; nothing without one."""
    if not advice.settings:
        return []
    untried = any(SETTINGS_UNCALIBRATED in move.prediction.warnings for move in advice.settings)
    steps = [_steps(move) for move in advice.settings if move.worthwhile]
    return [
        _table(advice, TITLE if titled else ""),
        Text(_CAUTION, Tone.QUIET),
        *([Text(f"{capitalized(SETTINGS_UNCALIBRATED)}.", Tone.QUIET)] if untried else []),
        *([Bullets(steps)] if steps else []),
    ]


def _table(advice: Advice, title: str) -> Table:
    once = advice.recorded.once
    gains = gain_headings(advice.run.unit, advice.currency, once)
    figures = (*gains, "may lose", "power cuts\nthat lost")
    table = Table(
        [
            Column("setting", ColumnKind.NAME),
            *(Column(name) for name in figures),
            Column("what may be lost", ColumnKind.WORDS),
        ],
        title=title,
    )
    for move in advice.settings:
        table.add(
            move.setting,
            *gain_cells(move, once),
            "no bound" if move.loses_s is None else figure(move.loses_s, numbers.seconds),
            _cuts(move),
            move.loses,
            tone=Tone.PLAIN if move.worthwhile else Tone.QUIET,
        )
    return table


def _steps(move: SettingMove) -> str:
    """How to set it, how to go back, and whether the database starts again."""
    again = "it needs a restart" if move.restart else "it needs no restart"
    sentences = [
        f"{move.setting}: {move.loses}. To set it: {move.there} To go back: {move.back} "
        f"{capitalized(again)}.",
        move.note,
    ]
    if measured := move.measured:
        sentences.append(
            f"Measured: {measured.harmed} of {measured.cuts} power cuts lost acknowledged commits or damaged "
            f"the database ({_share(measured)} of such cuts)."
        )
    return " ".join(filter(None, [*sentences, f"Source: {move.source}"]))


def _cuts(move: SettingMove) -> Cell:
    """``75 of 80`` with the interval of the share."""
    measured = move.measured
    if measured is None:
        return Cell("not tested")
    return Cell(f"{measured.harmed} of {measured.cuts}", below=(Text(_share(measured), Tone.QUIET),))


def _share(harm: MeasuredHarm) -> str:
    return numbers.span(numbers.percent(harm.low), numbers.percent(harm.high))
