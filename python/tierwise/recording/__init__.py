"""Opens a recording, a day of them or an observation: metadata, warnings, tables, breakdown.

Not here: taking one, which needs root; see ``capture``.
"""

from tierwise.recording.breakdown import ClientProgram, clients_sentence, pooler_of
from tierwise.recording.observation import Observation, open_recorded_source, write_observation
from tierwise.recording.recording import (
    ABOUT_FILE,
    OBSERVATION_FILE,
    TABLES,
    Day,
    MountedDevice,
    Recording,
    RecordingCheck,
    RecordingCost,
    RecordingMetadata,
    claimed_folder,
    discard_recording,
    make_recording_folder,
    new_recording_folder,
    open_recordings_of_folder,
    redact_recording,
    remove_recording,
)

__all__ = [
    "ABOUT_FILE",
    "OBSERVATION_FILE",
    "TABLES",
    "ClientProgram",
    "Day",
    "MountedDevice",
    "Observation",
    "Recording",
    "RecordingCheck",
    "RecordingCost",
    "RecordingMetadata",
    "claimed_folder",
    "clients_sentence",
    "discard_recording",
    "make_recording_folder",
    "new_recording_folder",
    "open_recorded_source",
    "open_recordings_of_folder",
    "pooler_of",
    "redact_recording",
    "remove_recording",
    "write_observation",
]
