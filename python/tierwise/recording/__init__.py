"""Opens a recording, a day of them or an observation: metadata, warnings, tables, breakdown.

Not here: taking one, which needs root; see ``capture``.
"""

from tierwise.recording.breakdown import ClientProgram, clients_sentence, pooler_of
from tierwise.recording.observation import Observation, open_source, write_observation
from tierwise.recording.recording import (
    ABOUT_FILE,
    OBSERVATION_FILE,
    TABLES,
    About,
    Check,
    Cost,
    Day,
    Device,
    Recording,
    discard_recording,
    make_folder,
    new_folder,
    open_each,
    redact,
    remove_recording,
)

__all__ = [
    "ABOUT_FILE",
    "OBSERVATION_FILE",
    "TABLES",
    "About",
    "Check",
    "ClientProgram",
    "Cost",
    "Day",
    "Device",
    "Observation",
    "Recording",
    "clients_sentence",
    "discard_recording",
    "make_folder",
    "new_folder",
    "open_each",
    "open_source",
    "pooler_of",
    "redact",
    "remove_recording",
    "write_observation",
]
