"""tierwise: which of my database's files deserve the fast device?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierwise.errors import TierwiseError
    from tierwise.placement import DeviceSpec, Placement
    from tierwise.results import RunResult
    from tierwise.results.files import read_results
    from tierwise.roles import Role

__all__ = ["DeviceSpec", "Placement", "Role", "RunResult", "TierwiseError", "read_results"]

_MODULES = {
    "DeviceSpec": "placement",
    "Placement": "placement",
    "Role": "roles",
    "RunResult": "results",
    "TierwiseError": "errors",
    "read_results": "results.files",
}


def __getattr__(name: str) -> object:
    """Import what is asked for: a command does not wait for what it does not use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
