"""Risks of a device, power cut and death: from its profile and from studies of power cuts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tierwise.advise.durability import NOT_TESTED, deaths_shown, durability, lost_at_stop
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, resolve

State = Literal["kept", "flush", "lost", "unknown"]
"""What a power cut leaves of completed writes: all, those that were flushed, nothing, or not known."""
STATES: dict[State, str] = {
    "kept": "keeps completed writes",
    "flush": "keeps flushed writes",
    "lost": "loses everything",
    "unknown": "not known",
}
_MIRRORED = {"raid1", "raid10", "raid5"}


@dataclass(frozen=True)
class Risk:
    """The risks of one device.

    Attributes:
        state: what a power cut leaves.
        power_cut: the same as a sentence, with its basis.
        tested: what studies of power cuts have shown, in a few words.
        death: what the death of one drive takes with it, and what studies have shown of it.
        alone: whether one drive is a single point of failure.
    """

    state: State
    power_cut: str
    tested: str
    death: str
    alone: bool


def risk(device: str, engine: str = "", roles: Collection[Role] = ()) -> Risk:
    """The risks of a device: by its profile, and by what studies have shown for an engine.

    Args:
        device: its name.
        engine: name of the engine; empty for all.
        roles: whose files it holds, for the death of the device.
    """
    (harm,) = durability({Role.LOG: device}, engine or None)
    power_cut = f"{harm.fact}; {harm.shown}"
    tested = f"{harm.harmed_of_made} cuts did harm" if harm.cuts else NOT_TESTED
    if device == RECORDED:
        return Risk("unknown", power_cut, tested, "not known", False)
    profile = resolve(device).profile
    lost = bool(lost_at_stop({Role.LOG: device}))
    state: State = "lost" if lost else "flush" if profile.write_cache else "kept"
    death, alone = _death(profile.kind, profile.fields)
    if alone:
        shown = deaths_shown(engine, roles)
        death = ". ".join([death, *(f"{role.capitalize()}: {words}" for role, words in shown.items())])
    return Risk(state, power_cut, tested, death, alone)


def _death(kind: str, fields: Mapping[str, Any]) -> tuple[str, bool]:
    """What the death of a drive takes, by a profile with what it took over from others."""
    if kind == "volume":
        return "its provider keeps copies within one zone; a lost zone or account takes them all", False
    if kind == "array":
        level = fields.get("level")
        if level in _MIRRORED and fields.get("failed_members"):
            return "one member is dead already: the death of another may take all its files", True
        if level in _MIRRORED:
            return f"survives the death of one member ({str(level).upper().replace('RAID', 'RAID ')})", False
        return "the death of any member takes all its files (RAID 0)", True
    if kind == "ram":
        return "a restart takes all its files", True
    return "one drive: its death takes all its files", True
