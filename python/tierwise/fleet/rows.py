"""The rows of every database of a fleet: those that are known from a former run, and those worked out now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tierwise.fleet.catalogue import LeftOutRecording
from tierwise.fleet.checksums import with_checksums
from tierwise.fleet.options import DatabaseOptions, OptionsTask, options_of
from tierwise.fleet.results import Results
from tierwise.model.executor import Executor, Lost
from tierwise.model.names import printable


def rows_of(
    tasks: Sequence[OptionsTask],
    executor: Executor,
    results: Results | None,
    progress: Callable[[int, int], None],
) -> list[DatabaseOptions | LeftOutRecording]:
    """The rows of each task, in order.

    Args:
        tasks: one for each database.
        executor: does those that are not in ``results``.
        results: of former runs; the rows found now are added. A recording that was left out is tried again.
        progress: called with the number of finished databases and the number of all.
    """
    found: dict[int, DatabaseOptions | LeftOutRecording] = {}
    if results is not None:
        tasks = with_checksums(tasks)
        found |= results.known(tasks)
    open_ = [number for number in range(len(tasks)) if number not in found]
    progress(len(found), len(tasks))
    try:
        for index, rows in executor.run(options_of, [tasks[number] for number in open_]):
            number = open_[index]
            found[number] = _left_out(tasks[number], rows) if isinstance(rows, Lost) else rows
            if results is not None and isinstance(rows, DatabaseOptions):
                results.add(tasks[number], rows)
            progress(len(found), len(tasks))
    finally:
        if results is not None:
            results.flush()
    return [found[number] for number in range(len(tasks))]


def _left_out(task: OptionsTask, lost: Lost) -> LeftOutRecording:
    where = task.recording
    return LeftOutRecording(name=where.name, uri=printable(where.uri), problem=lost.problem, fix=lost.fix)
