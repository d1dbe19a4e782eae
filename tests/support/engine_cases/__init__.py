"""The engines that the contract suite runs on: one module each, with a list ``CASES``."""

from __future__ import annotations

import importlib
import pkgutil

from support.engine_contract import EngineCase

CASES: list[EngineCase] = [
    case
    for module in sorted(iter_module.name for iter_module in pkgutil.iter_modules(__path__))
    for case in importlib.import_module(f"{__name__}.{module}").CASES
]
