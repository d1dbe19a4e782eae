"""Colours. Both sets of hues are distinct under the common kinds of colour blindness (after Okabe and Ito).

Every colour has a name, a value for light and one for dark backgrounds. Charts inside a page use CSS
variables, so that one drawing fits both backgrounds; other charts use the light values.
"""

from __future__ import annotations

from collections.abc import Callable

LIGHT = {
    "ground": "#ffffff",
    "ink": "#1c1e21",
    "muted": "#5d636b",
    "line": "#c9cdd2",
    "grid": "#e8eaed",
    "baseline": "#59616b",
    "place-1": "#0068a8",
    "place-2": "#d05a00",
    "place-3": "#00875f",
    "place-4": "#a8508a",
    "place-5": "#3d95cf",
    "place-6": "#a07a00",
    "wait-log_sync": "#c2440e",
    "wait-log_lock": "#f0a35e",
    "wait-data_read": "#12735f",
    "wait-data_write": "#79bfa9",
    "wait-lock": "#7d5ba6",
    "wait-cpu": "#3f6fa8",
    "wait-client": "#c4c9d0",
    "wait-other": "#e2e5e9",
}
DARK = LIGHT | {
    "ground": "#15171a",
    "ink": "#eceef0",
    "muted": "#a0a7b0",
    "line": "#4a5058",
    "grid": "#2a2e33",
    "baseline": "#a9b1bb",
    "place-1": "#5cb0ee",
    "place-2": "#ff9146",
    "place-3": "#35c493",
    "place-4": "#e09ac6",
    "place-5": "#9ad3fb",
    "place-6": "#dcb73f",
    "wait-log_sync": "#d6551d",
    "wait-lock": "#9676bf",
    "wait-cpu": "#5285c2",
    "wait-client": "#6d747d",
    "wait-other": "#3f454c",
}
ROLE_COLOURS = {
    "log": "place-2",
    "doublewrite": "wait-log_lock",
    "data": "place-1",
    "index": "place-5",
    "undo": "place-4",
    "temp": "place-3",
    "system": "baseline",
    "archive": "place-6",
    "unattributed": "wait-client",
}
"""Role -> name of its colour, in the stacking order of charts; the last is for I/O without a role."""
_PLACES = 6
_DARK_TEXT_ON = frozenset({"wait-log_lock", "wait-data_write"})
_THEME_TEXT_ON = frozenset({"wait-client", "wait-other", "line"})

Colour = Callable[[str], str]
"""Name of a colour -> value in a drawing."""


def css_variable(name: str) -> str:
    """Value for a drawing inside a page that defines the variables."""
    return f"var(--{name})"


def standalone_colour(name: str) -> str:
    """Value for a standalone drawing."""
    return LIGHT[name]


def css_declarations(colours: dict[str, str]) -> str:
    """The variables of one background."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def placement_colour_names(placements: list[str], baseline: str) -> dict[str, str]:
    """Placement -> name of its colour, the same in every chart; the baseline is grey.

    With more placements than hues the hues repeat; charts label their rows, so colour is never the only key.
    """
    others = [name for name in placements if name != baseline]
    colours = {name: f"place-{index % _PLACES + 1}" for index, name in enumerate(others)}
    return {name: colours.get(name, "baseline") for name in placements}


def readable_text_colour(name: str, colour: Colour) -> str:
    """A readable text colour on a bar of the named colour."""
    if name in _THEME_TEXT_ON:
        return colour("ink")
    return "#1c1e21" if name in _DARK_TEXT_ON else "#ffffff"
