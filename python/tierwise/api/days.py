"""A day of recordings from Python: its timeline, its advice, each of its recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from tierwise.advise import DayAdvice, advise_day
from tierwise.api.recordings import RecordedRun
from tierwise.api.views import View
from tierwise.predict.timeline import Timeline, timeline_of
from tierwise.recording import Day
from tierwise.report.recording.day import day_document
from tierwise.report.recording.day_advice import day_advice_document


class RecordedDay:
    """An opened day: a sequence of recordings, the earliest first."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Open all recordings of a folder.

        Args:
            path: the folder.
            fresh: predict new devices in the state of their first day, not of long use.

        Raises:
            TierwiseError: if no recording can be opened.
        """
        self._day, self._fresh = Day.open(path), fresh

    def __len__(self) -> int:
        """Number of recordings."""
        return len(self._day.recordings)

    def __iter__(self) -> Iterator[RecordedRun]:
        """The recordings."""
        return (self[number] for number in range(len(self)))

    def __getitem__(self, which: int | str) -> RecordedRun:
        """A recording by its number, or by the name of its folder.

        Raises:
            KeyError: if there is none of that name.
        """
        names = {one.path.name: one for one in self._day.recordings}
        found = self._day.recordings[which] if isinstance(which, int) else names[which]
        return RecordedRun(found.path, fresh=self._fresh)

    @property
    def warnings(self) -> list[str]:
        """A sentence for each recording that could not be opened."""
        return self._day.warnings

    def timeline(self) -> View[Timeline]:
        """Rate, latency, log waits and busy devices of each recording, without a replay."""
        return View(self._timeline, day_document(self._timeline), f"day {self._timeline.folder}")

    def advise(
        self, devices: Sequence[str], budget: str | None = None, goal: str | None = None
    ) -> View[DayAdvice]:
        """Advise for the peak, the mean and the worst hour; see :meth:`RecordedRun.advise`."""
        found = advise_day(self._timeline, lambda name: self[name].advise(devices, budget, goal).data)
        return View(found, day_advice_document(found), "advice")

    @cached_property
    def _timeline(self) -> Timeline:
        return timeline_of(self._day)


def open_recording(path: str | Path, *, fresh: bool = False) -> RecordedRun | RecordedDay:
    """Open the recording in a folder, or the day of recordings in it; see :class:`RecordedRun`."""
    found = Path(path)
    return RecordedDay(found, fresh=fresh) if Day.is_at(found) else RecordedRun(found, fresh=fresh)
