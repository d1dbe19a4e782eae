"""An embedded engine of a few lines: a dictionary that is written to one file on close."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, ClassVar

from support.paths import TESTS
from tierwise.lab.engines.embedded.embedded_adapter import OpenParameters
from tierwise.lab.engines.embedded.embedded_engine import EmbeddedEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.measurements import Counters


class ToyAdapter:
    """Statements are ``put KEY``, ``fail``, ``crash`` and ``wait SECONDS``."""

    count_threads = staticmethod(threading.active_count)

    def open(self, opening: OpenParameters) -> None:
        if "broken" in opening.settings:
            raise TierwiseError("setting broken is bad", "leave it out")
        self._settings = dict(opening.settings)
        self._file = opening.directory(Role.DATA) / "toy"
        self._kept: list[str] = json.loads(self._file.read_text()) if self._file.exists() else []
        self._opening = opening

    def driver(self) -> tuple[str, object]:
        return "python", self

    def execute(self, statement: str) -> None:
        word, _, argument = statement.partition(" ")
        if word == "put":
            self._kept.append(argument)
        elif word == "fail":
            raise ValueError("this is wrong\nand this is the second line")
        elif word == "crash":
            os._exit(3)
        else:
            time.sleep(float(argument))

    def checkpoint(self) -> None:
        self._file.write_text(json.dumps(self._kept))

    def counters(self) -> Counters:
        return Counters(commits=len(self._kept))

    def settings(self) -> dict[str, str]:
        return {**self._settings, "memory": str(self._opening.limits.memory_bytes)}

    def close(self) -> None:
        self.checkpoint()


class ToyEngine(EmbeddedEngine):
    roles: ClassVar = frozenset({Role.DATA, Role.SYSTEM})
    dialect: ClassVar = "toy"
    adapter: ClassVar = "support.embedded_toy:ToyAdapter"
    package: ClassVar = "pytest"

    @classmethod
    def allowed_settings(cls) -> frozenset[str]:
        return frozenset({"broken"})

    def ask(self, request: str, **arguments: Any) -> Any:
        return self._call(request, **arguments)


def toy_path() -> str:
    """What must be in PYTHONPATH for the worker to find this module."""
    return str(TESTS)
