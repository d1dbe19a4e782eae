"""Settings instead of a move: what they gain for nothing, and what a crash or a power cut then loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.advise.durability import ShownCuts, shown_cuts
from tierwise.advise.goal import Goal
from tierwise.advise.option import MARGIN, Option, is_told
from tierwise.model.placement import Role
from tierwise.model.statistics import share_interval
from tierwise.predict import Prediction, Predictor, estimates, settings
from tierwise.predict.settings import ChosenSetting
from tierwise.results.measurements import Record


class MeasuredHarm(Record):
    """Power cuts of studies with a setting that is not durable."""

    harmed: int
    """Cuts that lost acknowledged commits or damaged the database."""
    cuts: int
    low: float
    """Low end of the 95 % interval of the share of such cuts, by Clopper and Pearson."""
    high: float
    """Its high end."""


class SettingMove(Record):
    """One setting with another value, every file where it was recorded."""

    setting: str
    """``synchronous_commit=off``."""
    prediction: Prediction
    gain_per_s: float
    """More transactions a second than as recorded."""
    cost_per_month: float = 0.0
    """Always 0: there is nothing to buy."""
    loses: str
    """What may be lost and when, in words."""
    loses_s: float | None
    """Documented bound of what is lost, in seconds; ``None`` if there is none."""
    there: str
    """How to set it."""
    back: str
    """How to go back."""
    note: str
    """What else to know of it; may be empty."""
    restart: bool
    """Whether the database or its program has to start again."""
    source: str
    """Address of the documentation."""
    measured: MeasuredHarm | None
    """Of studies with this engine and setting, on devices that obey flushes; ``None`` if none tried it."""
    worthwhile: bool
    """Whether its gain can be told from none, and the median latency gets no longer."""
    with_move: Prediction | None = None
    """With the recommended placement; ``None`` if that is to stay."""


def setting_moves(predictor: Predictor, staying: Prediction | None = None) -> list[SettingMove]:
    """Each setting of the recorded engine that the recording can answer, the greatest gain first.

    Args:
        predictor: of the recording.
        staying: what they are compared with; the recorded run if not given.
    """
    tried = settings.advised(predictor.about)
    recorded = staying or predictor.as_recorded
    asked = [recorded.scenario.model_copy(update={"settings": [setting.text]}) for setting in tried]
    answers = predictor.predict(asked)
    moves = [_move(setting, answer, recorded) for setting, answer in zip(tried, answers, strict=True)]
    return sorted((move for move in moves if move), key=lambda move: move.gain_per_s, reverse=True)


def with_placement(
    predictor: Predictor,
    moves: Sequence[SettingMove],
    placement: Mapping[Role, str],
    staying: Prediction,
) -> list[SettingMove]:
    """The same settings, each with its answer for a placement; as they are for one that moves nothing.

    Args:
        predictor: of the recording.
        moves: the settings.
        placement: the recommended one.
        staying: what they are compared with.
    """
    if not placement:
        return list(moves)
    places = {role.value: device for role, device in placement.items()}
    asked = [{"placement": places, "settings": [move.setting]} for move in moves]
    answers = predictor.predict([staying.scenario.model_copy(update=change) for change in asked])
    return [
        move.model_copy(update={"with_move": answer}) for move, answer in zip(moves, answers, strict=True)
    ]


def instead(
    moves: Sequence[SettingMove], option: Option, goal: Goal | None, may_lose_s: float | None
) -> SettingMove | None:
    """The setting to recommend in place of an option: it loses no more than is allowed and reaches as much.

    Args:
        moves: settings, the greatest gain first.
        option: what is recommended without them.
        goal: what to reach; a setting that reaches it is enough if the option was chosen for it.
        may_lose_s: commits of how many seconds may be lost; ``None`` for no setting at all.

    Returns:
        The one that loses least, then the one that gains most; ``None`` if there is none.
    """
    if may_lose_s is None:
        return None
    allowed = [
        move
        for move in moves
        if move.worthwhile and move.loses_s is not None and move.loses_s <= may_lose_s
        if (goal is not None and goal.verdict(move.prediction).endswith("reached"))
        or (goal is None and _reaches(move, option))
    ]
    return min(allowed, key=lambda move: move.loses_s or 0.0, default=None)


def _reaches(move: SettingMove, option: Option) -> bool:
    """Whether the option is not faster by more than the margin within which predictions count as equal."""
    step = estimates.ratio(option.prediction.seed_rates_per_s, move.prediction.seed_rates_per_s)
    return option.stays or step is None or step.value <= MARGIN


def _move(setting: ChosenSetting, answer: Prediction, recorded: Prediction) -> SettingMove | None:
    if answer.rate_per_s is None or recorded.rate_per_s is None:
        return None
    return SettingMove(
        setting=setting.text,
        prediction=answer,
        gain_per_s=answer.rate_per_s.value - recorded.rate_per_s.value,
        loses=setting.loses,
        loses_s=setting.loses_s,
        there=setting.there,
        back=setting.setting.back,
        note=setting.setting.note,
        restart=setting.setting.restart,
        source=setting.setting.source,
        measured=_measured(
            [
                cut
                for cut in shown_cuts().cuts
                if (cut.engine, cut.durability) == (setting.engine, setting.setting.cuts) and not cut.lies
            ]
        ),
        worthwhile=is_told(answer, recorded),
    )


def _measured(cuts: Sequence[ShownCuts]) -> MeasuredHarm | None:
    harmed, made = sum(cut.harmed for cut in cuts), sum(cut.cuts for cut in cuts)
    if made == 0:
        return None
    low, high = share_interval(harmed, made)
    return MeasuredHarm(harmed=harmed, cuts=made, low=low, high=high)
