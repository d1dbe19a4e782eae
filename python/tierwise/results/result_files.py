"""Result files: JSON Lines that survive a kill, and the study beside them."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.input_files import parse_as_model, parse_json, read_lines, read_text
from tierwise.model.output_files import append_line, open_output_file, require_own_directory
from tierwise.results import SCHEMA_VERSION, RunResult, StudyInfo
from tierwise.results.conditions import RunConditions
from tierwise.results.measurements import StrictModel

LATEST = "latest"
"""Link in a study's directory of results to the directory of its last start."""
_MOST_BYTES = 1 << 30
_RecordT = TypeVar("_RecordT", bound=StrictModel)


def latest_results(directory: Path) -> Path | None:
    """The directory that the link ``latest`` names, which must lie beside it; ``None`` if there is none."""
    link = directory / LATEST
    if not link.is_symlink():
        return link if link.is_dir() else None
    target = directory / link.readlink()
    beside = target.parent == directory and target.name not in ("", "..") and not target.is_symlink()
    return target if beside and target.is_dir() else None


def own_latest_results(directory: Path) -> Path | None:
    """The same where results are to be added: all of it must be the caller's."""
    link = directory / LATEST
    try:
        require_own_directory(directory)
        if link.lstat().st_uid != os.geteuid():
            raise TierwiseError(f"{link}: another user made it", "remove it, or name another directory")
        latest = latest_results(directory)
        if latest is not None:
            require_own_directory(latest)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TierwiseError(f"{error.filename}: {error.strerror}", "name a directory of your own") from error
    return latest


def write_study_info(path: Path, info: StudyInfo) -> None:
    """Write ``study.json``, replacing what was there."""
    with open_output_file(path, "replace") as file:
        file.write(info.model_dump_json(indent=2).encode() + b"\n")


def read_study_info(path: Path) -> StudyInfo:
    """Read ``study.json``."""
    text = read_text(path, "name a directory that a study has written", in_folder=True)
    return read_record(StudyInfo, text, str(path))


def append_record(path: Path, record: StrictModel, *, brief: bool = False) -> None:
    """Add one record to a JSON Lines file and force it to disk, so that a kill loses none that is finished.

    A last line cut short by a crash or a full disk is removed first. ``brief`` leaves out defaults.
    """
    with os_errors(path, "keep that folder, with room, then run it again"):
        append_line(path, record.model_dump_json(exclude_defaults=brief).encode())


def replace_results(path: Path, results: Iterable[RunResult]) -> None:
    """Replace the records of a JSON Lines file: a kill or an error leaves the old file or the new one."""
    draft = path.with_suffix(".draft")
    with os_errors(path, "keep that folder, with room, then resume the study again"):
        with open_output_file(draft, "replace") as file:
            file.writelines(result.model_dump_json().encode() + b"\n" for result in results)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


def read_results(
    path: Path, *, in_folder: bool = True, study: str | None = None, seed: int | None = None
) -> list[RunResult]:
    """Read a JSON Lines file of results, and refuse what cannot be of one start of a study.

    A run may not be there twice, contradict itself, or be of another study or of another start of it.

    Args:
        study: name of the study that wrote it; by default that of the first run.
        seed: of the start of the study that wrote it; by default that of the first run of each engine.
    """
    results = read_records(
        RunResult, path, "name the results.jsonl of a study that has run", in_folder=in_folder
    )
    require_consistent_results(results, str(path), study, seed)
    return results


def require_consistent_results(
    results: Sequence[RunResult], where: str, study: str | None = None, seed: int | None = None
) -> None:
    """Refuse results that cannot be of one start of a study; see :func:`read_results`."""
    for problem, fix in _contradictions(results, study, seed):
        raise TierwiseError(f"{where}: {problem}", fix)


_CONDITIONS = {
    "host": "the machine",
    "cpu_model": "the processor",
    "cores": "the number of cores",
    "kernel": "the kernel",
    "tierwise_version": "tierwise",
}
"""Fields of ``Machine`` that runs which are compared share, each with its name for people."""


def shared_conditions_of(engine: str, version: str | None, machine: RunConditions) -> dict[str, object]:
    """What runs that are compared have in common, by its name for people."""
    return {f"engine {engine}": version} | {
        what: getattr(machine, field) for field, what in _CONDITIONS.items()
    }


_RATE_TOLERANCE = 1e-3
"""Of a rate, against transactions over time."""


def _contradictions(
    results: Sequence[RunResult], study: str | None, seed: int | None
) -> Iterator[tuple[str, str]]:
    """What cannot be of the results of one start of a study, each with its fix."""
    seen: dict[Hashable, str] = {}
    seeds: dict[str, int] = {}
    yield from _mixed_blocks(results)
    for run in results:
        if run.study != (study or results[0].study):
            others = study or results[0].study
            yield (
                f"run {run.run_id} is of study {run.study!r}, others are of {others!r}",
                "keep the results of each study in a file of its own",
            )
        engine = run.engine.name
        start = seeds.setdefault(engine, run.study_seed if seed is None else seed)
        if run.study_seed != start:
            yield (
                f"run {run.run_id} is of a start of the study with seed {run.study_seed}, others are of one "
                f"with seed {start}",
                "keep the results of each start in a file of its own",
            )
        # A line may have been pasted with another name, or as another repeat.
        repeat = engine, run.placement, frozenset(run.setting.items()), run.repeat
        content = run.model_dump_json(exclude={"run_id", "repeat", "order"})
        if twice := next((seen[key] for key in (run.run_id, repeat, content) if key in seen), None):
            other = "there twice" if twice == run.run_id else f"run {twice} under another name"
            yield f"run {run.run_id} is {other}", "remove one of the two lines"
        seen |= dict.fromkeys((run.run_id, repeat, content), run.run_id)
        rate = run.rate_per_s
        if rate is None or run.transactions is None or not run.elapsed_s:
            continue
        counted = run.transactions / run.elapsed_s
        if not math.isclose(rate, counted, rel_tol=_RATE_TOLERANCE):
            yield (
                f"run {run.run_id}: rate_per_s is {rate:g}, and {run.transactions:,} transactions in "
                f"{run.elapsed_s:g} s are {counted:g} a second",
                "run it again, or remove its line",
            )


def _mixed_blocks(results: Sequence[RunResult]) -> Iterator[tuple[str, str]]:
    """Runs of a block under different conditions: their ratio is not that of placements alone."""
    first: dict[tuple[str, int], RunResult] = {}
    for run in results:
        if run.status == "failed":
            continue
        other = first.setdefault((run.engine.name, run.repeat), run)
        before = shared_conditions_of(run.engine.name, other.engine.version, other.machine)
        for what, now in shared_conditions_of(run.engine.name, run.engine.version, run.machine).items():
            if before[what] != now:
                yield (
                    f"{what} was {before[what]} in run {other.run_id} and is {now} in run {run.run_id}, "
                    "which are compared",
                    "run all again with --fresh or in another --output",
                )


_OTHER_SCHEMA = f"read it with the tierwise that wrote it, or run it again (schema {SCHEMA_VERSION})"


def read_records(model: type[_RecordT], path: Path, fix: str, *, in_folder: bool = True) -> list[_RecordT]:
    """Read a JSON Lines file of records; a last line cut short by a crash is left out.

    Args:
        fix: what to do if it is missing.
        in_folder: the user names its directory only: the file must not be a link.
    """
    lines = read_lines(path, fix, most_bytes=_MOST_BYTES, in_folder=in_folder)
    return [read_record(model, line, f"{path}:{n}") for n, line in enumerate(lines, start=1) if line]


def read_record(model: type[_RecordT], text: str | bytes, where: str, fix: str = _OTHER_SCHEMA) -> _RecordT:
    """Read one record; refuse what is none of this schema version."""
    parse_json(text, where, fix)  # refuses numbers that are too large
    return parse_as_model(model, text, where, fix, strict=True)
