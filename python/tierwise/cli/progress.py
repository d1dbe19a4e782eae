"""Progress bars of simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from tierwise.predict import Predictor


@contextmanager
def simulations(predictor: Predictor, console: Console) -> Iterator[None]:
    """Draw the remaining simulations of a ranking or an advice on a terminal; remove the bar at the end."""
    with counted("simulating", console) as progress:
        predictor.replayer.progress = progress
        yield


@contextmanager
def counted(what: str, console: Console) -> Iterator[Callable[[int, int], None]]:
    """Draw on a terminal how many of all are done, as the given function is told."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
