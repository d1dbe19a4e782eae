"""tierwise: which of my database's files deserve the fast device?"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes longer than everything else here
if TYPE_CHECKING:
    from tierwise.api.devices import device, devices
    from tierwise.api.recordings import open_recording, record, verify
    from tierwise.api.studies import load_study, open_results
    from tierwise.model.errors import HostError, TierwiseError
    from tierwise.model.placement import Role
    from tierwise.predict.scenario import Scenario

__all__ = [
    "HostError",
    "Role",
    "Scenario",
    "TierwiseError",
    "device",
    "devices",
    "load_study",
    "open_recording",
    "open_results",
    "record",
    "verify",
]

_MODULES = {
    "HostError": "model.errors",
    "Role": "model.placement",
    "Scenario": "predict.scenario",
    "TierwiseError": "model.errors",
    "device": "api.devices",
    "devices": "api.devices",
    "load_study": "api.studies",
    "open_recording": "api.recordings",
    "open_results": "api.studies",
    "record": "api.recordings",
    "verify": "api.recordings",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is used, so that importing tierwise takes no time."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Public names, for completion."""
    return __all__
