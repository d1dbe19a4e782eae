"""Advice for a day: for its peak, its mean and its worst hour, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable

from tierwise.advise.advice import Advice
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict.timeline import DayTimeline, Load
from tierwise.results.measurements import StrictModel

Ask = Callable[[str], Advice]
"""Gives the advice for a recording of the day, by the name of its folder."""


class AdviceForLoad(StrictModel):
    """The advice for one load of the day."""

    load: Load
    """Peak, mean or worst p99 hour."""
    recording: str
    """Name of the recording that stands for it."""
    advice: Advice | None
    """``None`` if the recording gives none."""
    refused: str = ""
    """Why there is no advice; empty if there is."""

    @property
    def first_move(self) -> tuple[Role, str] | None:
        """Role and device of the first move; ``None`` if the advice is to move nothing, or roles together."""
        advice = self.advice
        if advice is None or advice.instead or advice.decision.stays or not advice.ladder:
            return None
        return advice.ladder[0].role, advice.ladder[0].device

    @property
    def first_step(self) -> tuple[str | None, dict[Role, str]]:
        """What to do first: the setting to set, or the roles to move and their devices; nothing to stay."""
        if self.advice and self.advice.instead:
            return self.advice.instead.setting, {}
        return None, dict([self.first_move]) if self.first_move else self.best or {}

    @property
    def best(self) -> dict[Role, str] | None:
        """The best placement: its moved roles."""
        return self.advice.decision.option.placement if self.advice else None


class DayAdvice(StrictModel):
    """The advice for each load of a day."""

    day: DayTimeline
    """The day in figures."""
    answers: list[AdviceForLoad]
    """One for each load."""
    same_first_move: bool
    """Whether all loads that have advice begin with the same move, or the same setting in its place."""
    same_best: bool
    """Whether all loads that have advice have the same best placement."""


def advise_day(day: DayTimeline, ask: Ask) -> DayAdvice:
    """Ask for the advice of each load; a recording that stands for several is asked once.

    Raises:
        TierwiseError: if no recording of the day gives advice: the first one's reason.
    """
    if not day.chosen:
        raise TierwiseError(f"{day.folder}: no recording shows work", "record while the database has load")
    asked: dict[str, Advice | TierwiseError] = {}
    for name in dict.fromkeys(day.chosen.values()):
        try:
            asked[name] = ask(name)
        except TierwiseError as error:
            asked[name] = error
    errors = [error for error in asked.values() if isinstance(error, TierwiseError)]
    if len(errors) == len(asked):
        raise errors[0]
    answers = [_advice_for_load(load, name, asked[name]) for load, name in day.chosen.items()]
    given = [answer for answer in answers if answer.advice]
    return DayAdvice(
        day=day,
        answers=answers,
        same_first_move=all(answer.first_step == given[0].first_step for answer in given),
        same_best=all(answer.best == given[0].best for answer in given),
    )


def _advice_for_load(load: Load, name: str, advice: Advice | TierwiseError) -> AdviceForLoad:
    if isinstance(advice, TierwiseError):
        return AdviceForLoad(load=load, recording=name, advice=None, refused=advice.message)
    return AdviceForLoad(load=load, recording=name, advice=advice)
