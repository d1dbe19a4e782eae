"""A database that runs already is recorded for a time and left as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tierwise.record.schedule import Schedule
from tierwise.record.session import Say, Session
from tierwise.record.target import Target


def record_running(target: Target, out: Path, schedule: Schedule, say: Say) -> dict[str, Any]:
    """Record by the schedule; Ctrl-C ends the recording early, and what was taken by then is kept.

    Returns:
        What the recording says of itself.

    Raises:
        TierwiseError: if nothing can be recorded, or the directory has something in it.
    """
    with Session(target, out, schedule, say) as session:
        try:
            session.run()
        except KeyboardInterrupt:
            session.stop()
        return session.finish()
