"""Answers that the explorer has beside those of placements: settings, and sets of tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tierwise.advise import Wear
from tierwise.predict import Prediction
from tierwise.report.advice.join import Subject
from tierwise.report.recording.tables import listed, page_sets, set_title


@dataclass(frozen=True)
class Choice:
    """One simulated answer; no other combination has one.

    Attributes:
        fields: for the scripts of the page: ``number`` of the placement that it was simulated with;
            ``settings``, indexes of the settings that are changed; of tables, ``title``, ``device``,
            ``rows``, indexes of the listed tables that move, and ``command`` that predicts it.
        prediction: its answer.
        cost_per_month: more than is paid now.
        wear: of the new devices.
    """

    fields: dict[str, Any]
    prediction: Prediction
    cost_per_month: float
    wear: Sequence[Wear]


def choices_of(subject: Subject) -> list[Choice]:
    """The settings with the recorded and with the advised placement, then the sets of tables."""
    return [*_settings(subject), *_tables(subject)]


def _settings(subject: Subject) -> Iterator[Choice]:
    advised = subject.survey.number(subject.placement)
    for place, move in enumerate(subject.advice.settings):
        for number, answer in ((0, move.prediction), (advised, move.with_move)):
            if number is not None and answer is not None and answer.rate_per_s is not None:
                fields = {"number": number, "settings": [place]}
                yield Choice(fields, answer, subject.cost_per_month(answer), subject.wear(answer))


def _tables(subject: Subject) -> Iterator[Choice]:
    """In the order of the page's table of sets; one without an answer has dashes there and is no choice."""
    advice = subject.advice.tables
    if advice is None:
        return
    names = f" --names {shlex.quote(str(subject.names))}" if subject.names else ""
    places = {row.name: place for place, row in enumerate(listed(advice))}
    for row, (device, page_set) in enumerate(page_sets(advice)):
        if page_set.prediction.rate_per_s is None:
            continue
        placed = ",".join(f"{pattern}={device}" for pattern in page_set.patterns)
        fields = {
            "number": 0,
            "settings": [],
            "row": row,
            "title": set_title(page_set),
            "device": device,
            "rows": [places[name] for name in page_set.names if name in places],
            "command": f"{subject.command} --place {shlex.quote(placed)}{names}",
        }
        yield Choice(
            fields, page_set.prediction, page_set.bill.per_month, [page_set.wear] if page_set.wear else []
        )
