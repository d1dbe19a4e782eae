"""The one decision of an advice, which every output shows: what to move, or why to stay and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tierwise.advise.option import Goal, Option
from tierwise.advise.search import Search
from tierwise.model.input_files import DATA, shipped
from tierwise.predict import Prediction, RecordedRun
from tierwise.predict.together import Together, together
from tierwise.results.measurements import Record

Why = Literal["faster", "cheaper", "goal", "alike", "median", "none"]
REMEDIES = DATA / "remedies.toml"
"""What shortens each part of the sessions' time where no device does."""
_LEAST_SHARE = 0.1
_MOST_PARTS = 2
_PARTS: Mapping[str, str] = {"log_device": "log", "log_queue": "log"}
"""Parts of the time with one remedy."""


class TimeShare(Record):
    """A part of the sessions' recorded time, and what would shorten it."""

    part: str
    """``cpu``, ``runnable`` (waiting for a core), ``client``, ``log``, ``read``, ``write``, ``lock``, …"""
    share: float
    """Of the sessions' time."""
    remedy: str
    """What would shorten it, such as ``more cores``; empty for a small part."""


class Decision(Record):
    """The recommended placement and its reason."""

    option: Option
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
    together: list[Together] = []
    """Roles that move as one, because their engine keeps them in one directory."""

    @property
    def stays(self) -> bool:
        """Whether every file stays where it is."""
        return self.option.stays

    @property
    def prediction(self) -> Prediction:
        """Of its placement."""
        return self.option.prediction


def decide(search: Search, run: RecordedRun, goal: Goal | None, reaching: Option | None) -> Decision:
    """The decision, by the rules of :class:`~tierwise.advise.search.Search`.

    Args:
        search: the ranked placements.
        run: what was recorded.
        goal: what to reach.
        reaching: the cheapest that reaches it, or the closest.
    """
    best, why = search.best, _why(search)
    if goal and reaching and reaching.placement != best.placement and _serves(search, goal, reaching):
        option, why = reaching, "goal"
    else:
        option = best
    return Decision(
        option=option,
        why=why,
        time=_time(search.staying.prediction, run) if option.stays else [],
        together=together(run.engine, run.footprints),
    )


def _serves(search: Search, goal: Goal, reaching: Option) -> bool:
    """Whether a placement reaches the goal and is not merely another name for staying."""
    if not goal.verdict(reaching.prediction).endswith("reached"):
        return False
    return reaching.stays or (search.may_be_recommended(reaching) and not search.staying.as_good_as(reaching))


def _why(search: Search) -> Why:
    """The reason of the best placement."""
    best, fastest = search.best, search.fastest
    if not best.stays:
        return "cheaper" if search.staying.as_good_as(best) else "faster"
    if fastest is None or search.ranking.tried <= 1:
        return "none"
    return "alike" if fastest.stays or search.staying.as_good_as(fastest) else "median"


def _time(recorded: Prediction, run: RecordedRun) -> list[TimeShare]:
    """The parts of the recorded time, with remedies for the greatest."""
    shares: dict[str, float] = {}
    for part, share in recorded.shares.items():
        name = _PARTS.get(part, part)
        shares[name] = shares.get(name, 0.0) + share
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
    others = remedy(part, run.engine)
    if part != "log" or not run.commit_delay_us:
        return others
    delay = remedy("commit_delay", run.engine)
    return f"{delay} (it adds {run.commit_delay_us / 1000:.3g} ms to a flush), {others}"


def remedy(part: str, engine: str) -> str:
    """What shortens a part of the time; empty if nothing is known."""
    remedies: Mapping[str, str] = shipped(REMEDIES).get(part, {})
    return remedies.get(engine, remedies.get("any", ""))
