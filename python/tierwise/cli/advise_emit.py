"""``tierwise advise --emit``: the advised placement as a file for another tool."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tierwise.advise import Advice, Terms
from tierwise.cli.output import write_file
from tierwise.cli.printing import echo
from tierwise.model.errors import FailedCheckError, TierwiseError
from tierwise.recording import Day, Observation, open_source

if TYPE_CHECKING:
    from tierwise.report.change import Change


class Emit(StrEnum):
    """Tool that an advice is written for."""

    CNPG = "cnpg"
    TERRAFORM = "terraform"
    ANSIBLE = "ansible"
    FIO = "fio"


def check_emit(emit: Emit | None, recording: Path) -> None:
    """Refuse a day, whose loads may have several advices.

    Raises:
        TierwiseError: the recording is a day.
    """
    if emit is not None and Day.is_at(recording):
        raise TierwiseError(
            f"--emit: {recording} is a day, which has an advice for each of its loads",
            "name one of its recordings",
        )


def emit_change(emit: Emit, advice: Advice, terms: Terms, recording: Path, output: Path | None) -> None:
    """Write what an advice changes, to standard output without a file; nothing where it changes nothing.

    Raises:
        FailedCheckError: the recording is not usable.
        TierwiseError: the tool cannot make this change.
    """
    if not advice.usable:
        reason = next(remark.reason for remark in advice.remarks if remark.blocks)
        raise FailedCheckError(f"--emit: the recording is not usable: {reason}", "record again, then advise")
    from tierwise.report.change import change_of  # only an advice with --emit needs it

    change = change_of(advice, terms.room)
    if change is None:
        echo("The advice is to leave every file where it is; there is nothing to emit.", err=True)
        return
    text = _text(emit, change, recording)
    if output is None:
        echo(text, nl=False)
    else:
        echo(f"{emit}: {write_file(output, text.encode())}", err=True)


def _text(emit: Emit, change: Change, recording: Path) -> str:
    from tierwise.recording.role_requests import role_requests
    from tierwise.report.change import cluster_patch, fio_jobs, playbook, volumes

    match emit:
        case Emit.CNPG:
            return cluster_patch(change)
        case Emit.TERRAFORM:
            return volumes(change)
        case Emit.ANSIBLE:
            return playbook(change)
        case Emit.FIO:
            source = open_source(recording)
            if isinstance(source, Observation):
                raise TierwiseError(
                    "--emit fio: an observation has no requests", "record with tierwise record"
                )
            return fio_jobs(change, role_requests(source))
