"""Cache of replays for repeated questions, such as with and without a calibrated error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tierwise import _core

if TYPE_CHECKING:
    from tierwise.predict.replayer import Core


class Remembered:
    """Keeps each answer of a core; the same core and seeds give the same answers."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._answers: dict[tuple[str, ...], str] = {}

    @property
    def core(self) -> Core:
        """The core itself."""
        return self._core

    def work(self) -> str:
        """As the core's."""
        return self._core.work()

    def reproduce(self, options: str, threads: int) -> str:
        """As the core's, once for each ``options``."""
        key = ("reproduce", options)
        if key not in self._answers:
            self._answers[key] = self._core.reproduce(options, threads)
        return self._answers[key]

    def predict(self, scenarios: str, profiles: Sequence[_core.Profile], threads: int) -> str:
        """As the core's, once for each list of scenarios on the same profiles."""
        key = ("predict", scenarios, *(profile.name for profile in profiles))
        if key not in self._answers:
            self._answers[key] = self._core.predict(scenarios, profiles, threads)
        return self._answers[key]
