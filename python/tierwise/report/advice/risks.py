"""What may go wrong with a device: a power cut, its death, wear. From its profile, which is not a test."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Literal

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
        death: what the death of one drive takes with it.
        alone: whether one drive is a single point of failure.
    """

    state: State
    power_cut: str
    death: str
    alone: bool


def risk(device: str) -> Risk:
    """The risks of a device by its profile.

    The one place to join what studies of power cuts have shown.
    """
    if device == RECORDED:
        unknown = "not known: the recording does not tell what the recorded devices keep; not tested"
        return Risk("unknown", unknown, "not known", False)
    profile = resolve(device).profile
    state: State = "lost" if profile.kind == "ram" else "flush" if profile.write_cache else "kept"
    says = {
        "kept": "completed writes survive: no cache that a power cut empties",
        "flush": "flushed writes survive, if the device honours flushes; others in its cache are lost",
        "lost": "everything on it is lost",
    }[state]
    death, alone = _death(profile.kind, profile.text)
    return Risk(state, f"{says} (its profile says so; not tested)", death, alone)


def _death(kind: str, text: str) -> tuple[str, bool]:
    if kind == "volume":
        return "its provider keeps copies within one zone; a lost zone or account takes them all", False
    if kind == "array":
        level = tomllib.loads(text).get("level")
        if level in _MIRRORED:
            return f"survives the death of one member ({str(level).upper().replace('RAID', 'RAID ')})", False
        return "the death of any member takes all its files (RAID 0)", True
    if kind == "ram":
        return "a restart takes all its files", True
    return "one drive: its death takes all its files", True
