"""Packages of the extra ``cluster``, imported on use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tierwise.model.errors import HostError


def require(module: str, purpose: str) -> Any:
    """A module of the extra.

    Args:
        module: its full name, such as ``scipy.optimize``.
        purpose: what needs it, for the error.

    Raises:
        HostError: it is not installed; the fix is the line to type.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise HostError(f"{purpose} needs {package}", "type: pip install 'tierwise[cluster]'") from error
