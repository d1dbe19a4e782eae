"""The recordings that are served: opened and their pages made on the simulator's threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TypeVar

from tierwise.advise import AdviceOptions, advise
from tierwise.predict import Predictor, resolve_device
from tierwise.predict.predictor import SEEDS
from tierwise.predict.replayer import Replayer
from tierwise.recording import Recording, RecordingMetadata
from tierwise.report.advice import advice_page, survey_advice
from tierwise.serve.page_questions import Slider, most_page_clients, page_sliders
from tierwise.serve.refinement import MOST_SEEDS, RefinedAnswer
from tierwise.serve.simulation_queue import SimulationQueue

MOST_OPEN = 4
"""Recordings kept open for questions; a further one closes the one used longest ago."""
MOST_REMEMBERED = 256
"""Final answers kept for each open recording, of some 10 KB each."""
K = TypeVar("K")
V = TypeVar("V")


class RecentlyUsed(OrderedDict[K, V]):
    """A mapping that forgets the entry used longest ago beyond ``most`` entries."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def recall(self, key: K) -> V | None:
        """The value of a key, which counts as used; ``None`` if there is none."""
        if key not in self:
            return None
        self.move_to_end(key)
        return self[key]

    def keep(self, key: K, value: V) -> None:
        """Add a value."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)


@dataclass(frozen=True)
class LiveRecording:
    """A recording ready for questions.

    Attributes:
        predictor: replayed with as many seeds as a refinement uses.
        most_clients: most clients that a question may have.
        page: as HTML.
        final: final answers by scenario.
    """

    predictor: Predictor
    most_clients: int
    page: bytes
    final: RecentlyUsed[str, RefinedAnswer] = field(default_factory=lambda: RecentlyUsed(MOST_REMEMBERED))


class ServedRecordings:
    """The recordings by number, from 1. Names of folders never become part of an address."""

    def __init__(self, paths: Sequence[Path], options: AdviceOptions, simulator: SimulationQueue) -> None:
        """Check the recordings and start to make their pages."""
        for path in paths:
            Recording.open(path)
        self.paths = list(paths)
        self.devices = list(
            dict.fromkeys(resolve_device(name).name for name in [*options.devices, *options.terms.have])
        )
        self._options, self._simulator = options, simulator
        self._lock = Lock()
        self._open: RecentlyUsed[int, Future[LiveRecording]] = RecentlyUsed(MOST_OPEN)
        self._made: dict[int, tuple[RecordingMetadata, int, bytes]] = {}
        """The metadata, the limit of clients and the page of each recording that was opened."""
        for number in range(1, len(self.paths) + 1):
            self.opened(number)

    def __contains__(self, number: int) -> bool:
        """Whether there is a recording with this number."""
        return 1 <= number <= len(self.paths)

    def opened(self, number: int) -> Future[LiveRecording]:
        """A recording with its page, ready for questions. One that failed is tried again."""
        with self._lock:
            opened = self._open.recall(number)
            if opened is None or (opened.done() and (opened.cancelled() or opened.exception())):
                opened = self._simulator.run(lambda: self._opened(number))
                self._open.keep(number, opened)
            return opened

    def _opened(self, number: int) -> LiveRecording:
        path = self.paths[number - 1]
        recording = Recording.open(path)
        replayer = self._replayer(path)
        predictor = Predictor(recording.about, recording.warnings, replayer, seeds=MOST_SEEDS)
        made = self._made.get(number)
        if made is None or made[0] != recording.about:  # the recording may have been replaced
            clients = most_page_clients(predictor)
            made = self._made[number] = recording.about, clients, self._page(path, predictor, clients)
        return LiveRecording(predictor, *made[1:])

    def _page(self, path: Path, predictor: Predictor, clients: int) -> bytes:
        """The page, by as many seeds as ``tierwise advise``; its own replayer remembers, and is dropped."""
        recording = Recording.open(path)
        few = Predictor(predictor.about, recording.warnings, self._replayer(path), seeds=SEEDS)
        few.select_from(recording, self._replayer)
        return make_live_page(path, few, self._options, page_sliders(few, clients)).encode()

    def _replayer(self, path: Path, *, selected: Sequence[int] = ()) -> Replayer:
        replayer = Replayer.open(path, fresh=self._options.fresh, threads=1, selected=selected)
        replayer.progress = lambda *_: self._simulator.require_open()
        return replayer


def make_live_page(
    path: Path, predictor: Predictor, options: AdviceOptions, sliders: Sequence[Slider]
) -> str:
    """The page of a recording, as ``tierwise advise -o`` writes it, with sliders and without tables."""
    predictor.replayer.remember()  # the page needs the placements that the advice ranks
    advice = advise(predictor, options, tables=True)
    live = {"ask": "ask", "most_seeds": MOST_SEEDS, "sliders": sliders}
    return advice_page(survey_advice(predictor, advice, options.terms, path, options.fresh), live)
