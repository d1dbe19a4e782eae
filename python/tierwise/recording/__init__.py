"""Opens a recording, or a day of them: metadata, warnings, tables, breakdown.

Not here: taking one, which needs root; see ``capture``.
"""

from tierwise.recording.day import Day
from tierwise.recording.recording import (
    ABOUT_FILE,
    TABLES,
    About,
    Check,
    Cost,
    Device,
    Recording,
    close_to_others,
    make_folder,
    redact,
    remove_recording,
)

__all__ = [
    "ABOUT_FILE",
    "TABLES",
    "About",
    "Check",
    "Cost",
    "Day",
    "Device",
    "Recording",
    "close_to_others",
    "make_folder",
    "redact",
    "remove_recording",
]
