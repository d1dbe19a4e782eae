"""Publishes the rows behind docs/evidence/accuracy.md, and the smallest of the recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tierwise.lab.validation.answers import ANSWERS_FILE
from tierwise.lab.validation.judging import RoundData
from tierwise.lab.validation.rows import ROWS_FILE, recording_of
from tierwise.lab.validation.runner import OWN_PROFILE, PLAN_FILE, SPEC_FILE
from tierwise.model.errors import os_errors
from tierwise.model.input_files import read_text
from tierwise.model.output_files import write_file
from tierwise.recording import ABOUT_FILE, redact, remove_recording

_FIX = "name the folder of a validation"
_MOST_BYTES = 1 << 28
_FILES = (PLAN_FILE, SPEC_FILE, ROWS_FILE, ANSWERS_FILE, OWN_PROFILE)


def publish(rounds: Sequence[RoundData], folder: Path, recordings_bytes: int = 0) -> list[Path]:
    """Copy each round's input of judging, without paths, to a folder named by the round.

    Args:
        rounds: rounds to copy.
        folder: destination.
        recordings_bytes: also redact and copy the smallest recordings, up to this total size.

    Raises:
        TierwiseError: if it cannot be written.
    """
    made: dict[Path, RoundData] = {}
    for round_data in rounds:
        same = sum(other.started.round == round_data.started.round for other in made.values())
        into = folder / (f"{round_data.started.round}-{same + 1}" if same else round_data.started.round)
        if into.resolve() == round_data.folder.resolve():
            continue
        made[into] = round_data
        with os_errors(into, "name a folder that you may write"):
            for name in _FILES:
                if (round_data.folder / name).exists():
                    text = read_text(round_data.folder / name, _FIX, most_bytes=_MOST_BYTES, in_folder=True)
                    write_file(into / name, text.replace(str(round_data.folder.absolute()), into.name))
    _publish_recordings(made, recordings_bytes)
    return list(made)


def _publish_recordings(made: Mapping[Path, RoundData], most_bytes: int) -> None:
    recordings = [
        (source, recording_of(into, row))
        for into, round_data in made.items()
        for row in round_data.recorded
        if ((source := recording_of(round_data.folder, row)) / ABOUT_FILE).is_file()
    ]
    for source, target in sorted(recordings, key=lambda pair: _size_bytes(pair[0])):
        most_bytes -= _size_bytes(source)
        if most_bytes < 0:
            return
        if target.exists():
            remove_recording(target)
        redact(source, target)


def _size_bytes(recording: Path) -> int:
    return sum(file.stat().st_size for file in recording.iterdir())
