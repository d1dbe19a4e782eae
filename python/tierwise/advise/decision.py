"""The one decision of an advice, which every output shows: what to move, or why to stay and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tierwise.advise.priced_placement import Goal, PricedPlacement
from tierwise.advise.search import PlacementSearch
from tierwise.model.input_files import DATA, read_shipped_toml
from tierwise.model.names import sum_by_key
from tierwise.predict import Prediction, RecordedRun
from tierwise.predict.inseparable_roles import InseparableRoles, inseparable_roles_of
from tierwise.results.measurements import StrictModel

Why = Literal["faster", "cheaper", "goal", "alike", "median", "none"]
REMEDIES = DATA / "remedies.toml"
"""What shortens each part of the sessions' time where no device does."""
_LEAST_SHARE = 0.1
_MOST_PARTS = 2
_PARTS: Mapping[str, str] = {"log_device": "log", "log_queue": "log"}
"""Parts of the time with one remedy."""


class TimeShare(StrictModel):
    """A part of the sessions' recorded time, and what would shorten it."""

    part: str
    """``cpu``, ``runnable`` (waiting for a core), ``client``, ``log``, ``read``, ``write``, ``lock``, …"""
    share: float
    """Of the sessions' time."""
    remedy: str
    """What would shorten it, such as ``more cores``; empty for a small part."""


class Decision(StrictModel):
    """The recommended placement and its reason."""

    option: PricedPlacement
    """To leave every file where it is, is one."""
    why: Why
    """``faster``: its gain can be told from none. ``cheaper``: it saves money and is not slower. ``goal``: it
    is the cheapest that reaches the goal. To stay: ``alike``: no placement can be told from it; ``median``:
    whatever is faster makes the median latency longer; ``none``: no other could be replayed or paid for."""
    setting: str | None = None
    """The setting that is recommended in place of the option, such as ``synchronous_commit=off``; ``None``
    unless the user allows the loss of commits."""
    time: list[TimeShare] = []
    """To stay: where the recorded time goes, the greatest part first, with remedies for the greatest."""
    together: list[InseparableRoles] = []
    """Roles that move as one, because their engine keeps them in one directory."""

    @property
    def stays(self) -> bool:
        """Whether every file stays where it is."""
        return self.option.stays

    @property
    def prediction(self) -> Prediction:
        """Of its placement."""
        return self.option.prediction


def decide(
    search: PlacementSearch, run: RecordedRun, goal: Goal | None, reaching: PricedPlacement | None
) -> Decision:
    """The decision, by the rules of :class:`~tierwise.advise.search.PlacementSearch`.

    Args:
        search: the ranked placements.
        run: what was recorded.
        goal: what to reach.
        reaching: the cheapest that reaches it, or the closest.
    """
    best, why = search.best, _reason(search)
    if goal and reaching and reaching.placement != best.placement and search.serves(goal, reaching):
        option, why = reaching, "goal"
    else:
        option = best
    return Decision(
        option=option,
        why=why,
        time=_time_shares(search.staying.prediction, run) if option.stays else [],
        together=inseparable_roles_of(run.engine, run.footprints),
    )


def _reason(search: PlacementSearch) -> Why:
    """The reason of the best placement."""
    best, fastest = search.best, search.fastest
    if not best.stays:
        return "cheaper" if search.staying.as_good_as(best) else "faster"
    if fastest is None or search.ranking.tried <= 1:
        return "none"
    return "alike" if fastest.stays or search.staying.as_good_as(fastest) else "median"


def _time_shares(recorded: Prediction, run: RecordedRun) -> list[TimeShare]:
    """The parts of the recorded time, with remedies for the greatest."""
    shares = sum_by_key((_PARTS.get(part, part), share) for part, share in recorded.shares.items())
    ordered = sorted(shares.items(), key=lambda pair: pair[1], reverse=True)
    return [
        TimeShare(
            part=part,
            share=share,
            remedy=_remedy(part, run)
            if number == 0 or (number < _MOST_PARTS and share >= _LEAST_SHARE)
            else "",
        )
        for number, (part, share) in enumerate(ordered)
        if share > 0
    ]


def _remedy(part: str, run: RecordedRun) -> str:
    """What shortens a part of this run's time; first a wait that a setting adds to it."""
    others = remedy_for_time_share(part, run.engine)
    if part != "log" or not run.commit_delay_us:
        return others
    delay = remedy_for_time_share("commit_delay", run.engine)
    return f"{delay} (it adds {run.commit_delay_us / 1000:.3g} ms to a flush), {others}"


def remedy_for_time_share(part: str, engine: str) -> str:
    """What shortens a part of the time; empty if nothing is known."""
    remedies: Mapping[str, str] = read_shipped_toml(REMEDIES).get(part, {})
    return remedies.get(engine, remedies.get("any", ""))
