"""Space that the files of each role may need: what lies there now, and what settings let it grow to.

Assumption: the load goes on at the recorded rate. Sources:

- PostgreSQL documentation, 'WAL Configuration': ``max_wal_size`` between checkpoints, before the oldest
  segment that ``wal_keep_size``, a replication slot or an archiver that fails still needs.
- MariaDB and MySQL documentation, 'InnoDB System Variables' and 'Binary Log': files of the redo log have
  their full size from the beginning; binary logs stay until they expire.
- SQLite documentation, 'Write-Ahead Logging': the log has no limit while there is always a reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tierwise.model.errors import TierwiseError
from tierwise.model.numbers import ratio_text
from tierwise.model.placement import Role
from tierwise.model.units import GB, SECTOR_BYTES, parse_size_bytes
from tierwise.predict.named_devices import RECORDED
from tierwise.predict.scenario import Scenario
from tierwise.recording import MountedDevice, RecordingMetadata
from tierwise.results.measurements import StrictModel

_DAY_S = 86_400
_DEFAULT_MAX_WAL_SIZE = 1 << 30
_DEFAULT_SEGMENT_SIZE = 16 << 20
_DEFAULT_REDO_LOG_CAPACITY = 100 << 20
"""MySQL shows it too where ``innodb_log_file_size`` is in force."""
_OFF = frozenset({"", "0", "off", "false", "no"})


class SpacePart(StrictModel):
    """What needs space beside or instead of the files that lie there."""

    what: str
    """A setting, or a setting and the rate it is multiplied by."""
    size_bytes: int


class RoleSpace(StrictModel):
    """Space of one role's files."""

    role: Role
    size_bytes: int
    """What a device must hold: the greater of what lies there now and the sum of the parts."""
    now_bytes: int
    """Of the files that lie there, touched or not, as far as the recording knows."""
    parts: list[SpacePart] = []
    """What the settings let the files grow to; empty if they say nothing."""
    grows_bytes_per_s: float = 0.0
    """At the recorded rate: by the engine's own counter, or else what is written. A log is written more than
    it grows: its last page again with each flush, and new files once with zeros."""
    unlimited: str = ""
    """When the files grow without limit, as ``if archiving stops``; empty if they do not."""


def role_spaces(
    about: RecordingMetadata, footprints: Mapping[Role, int], written: Mapping[Role, float] | None = None
) -> dict[Role, RoleSpace]:
    """The space of each role of a recording.

    Args:
        about: of the recording.
        footprints: bytes of the files that were touched, by role.
        written: bytes a second that the load writes, by role.
    """
    spaces = {}
    for role, touched in footprints.items():
        now = max(touched, about.role_bytes.get(role, 0))
        grows = _grows_bytes_per_s(role, about, (written or {}).get(role, 0.0))
        parts, unlimited = _grows_to(role, about, grows)
        needed = max(now, sum(part.size_bytes for part in parts))
        spaces[role] = RoleSpace(
            role=role,
            size_bytes=needed,
            now_bytes=now,
            parts=parts,
            grows_bytes_per_s=grows,
            unlimited=unlimited,
        )
    return spaces


def split_roles(about: RecordingMetadata) -> set[Role]:
    """Roles whose files lie on several recorded devices: what lies on each is not known."""
    parts = Counter(role for device in about.devices for role in device.roles)
    return {role for role, count in parts.items() if count > 1}


def device_fill_sizes(
    about: RecordingMetadata, spaces: Mapping[Role, RoleSpace]
) -> Iterator[tuple[MountedDevice, list[Role], float]]:
    """Each recorded device, the roles on it, and the growth of the files that fills it.

    All grow but the log, which settings limit. Nothing of a device with a part of a role's files.

    Args:
        about: of the recording.
        spaces: of the roles that stay on their device.
    """
    split = split_roles(about)
    for device in about.devices:
        held = [space for role, space in spaces.items() if role in device.roles]
        fixed = sum(space.size_bytes for space in held if space.role is Role.LOG)
        files = sum(space.now_bytes for space in held if space.role is not Role.LOG)
        free = device.sectors * SECTOR_BYTES - fixed
        whole = all(space.role not in split for space in held)
        if device.sectors > 0 and whole and (files > 0 or free < 0):
            yield device, [space.role for space in held], free / files if files > 0 else 1.0


def device_full_warnings(
    scenario: Scenario, about: RecordingMetadata, spaces: Mapping[Role, RoleSpace]
) -> list[str]:
    """Recorded devices that files which stay on them outgrow, as sentences."""
    if Role.SELECTED in spaces:  # how a table's files lie on devices is not known
        return []
    devices = scenario.devices_of(spaces)
    stay = {role: space for role, space in spaces.items() if devices[role] == RECORDED}
    return [
        f"{device.name}, the recorded device of {', '.join(roles)}, holds "
        f"{device.sectors * SECTOR_BYTES / GB:,.1f} GB and is full at {ratio_text(max(factor, 1.0))} times "
        "the "
        "data: the answer is for a larger one that is as fast"
        for device, roles, factor in device_fill_sizes(about, stay)
        if factor < (scenario.growth or 1.0)
    ]


def _grows_bytes_per_s(role: Role, about: RecordingMetadata, written_bytes_per_s: float) -> float:
    counted = about.counters.get("log_bytes") if role is Role.LOG and about.duration_s > 0 else None
    return written_bytes_per_s if counted is None else counted / about.duration_s


def _grows_to(role: Role, about: RecordingMetadata, grows_bytes_per_s: float) -> tuple[list[SpacePart], str]:
    match about.engine, role:
        case "postgres", Role.LOG:
            return _postgres_log(about.settings, about.replication_slots)
        case (("mariadb" | "mysql"), Role.LOG):
            return innodb_log_space(about.settings, about.engine), ""
        case (("mariadb" | "mysql"), Role.ARCHIVE):
            return _binary_log(about.settings, grows_bytes_per_s)
        case "sqlite", Role.LOG:
            return [], "if a reader never ends"
        case _:
            return [], ""


def _postgres_log(settings: Mapping[str, str], slots: int | None) -> tuple[list[SpacePart], str]:
    most = _size(settings, "max_wal_size")
    if settings and not most.size_bytes:
        most = SpacePart(what="max_wal_size by default", size_bytes=_DEFAULT_MAX_WAL_SIZE)
    segments = _number(settings, "wal_keep_segments") or 0.0
    segment_bytes = _size(settings, "wal_segment_size").size_bytes or _DEFAULT_SEGMENT_SIZE
    kept = max(
        (
            _size(settings, "wal_keep_size"),
            _size(settings, "max_slot_wal_keep_size"),
            SpacePart(what="wal_keep_segments", size_bytes=int(segments * segment_bytes)),
        ),
        key=lambda part: part.size_bytes,
    )
    parts = [part for part in (most, kept) if part.size_bytes > 0]
    if not settings:
        return parts, "if its settings, which are not known, let it grow"
    stops = []
    if settings.get("archive_mode", "off").lower() not in _OFF:
        stops.append("archiving stops")
    slot_limit = settings.get("max_slot_wal_keep_size", "-1" if slots else "")
    if slot_limit.startswith("-") and slots != 0:
        stops.append("the reader of a replication slot stops")
    return parts, f"if {' or '.join(stops)}" if stops else ""


INNODB_LOG = ("innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_files_in_group")
"""Settings that give the size of InnoDB's redo log."""


def innodb_log_space(settings: Mapping[str, str], engine: str) -> list[SpacePart]:
    """The redo log of MariaDB or MySQL; nothing if the settings do not tell."""
    capacity = _size(settings, "innodb_redo_log_capacity")
    each = _size(settings, "innodb_log_file_size")
    number, files = settings.get("innodb_log_files_in_group", ""), 1 if engine == "mariadb" else 2
    files = int(number) if number.isdecimal() and 0 < len(number) < 4 else files
    what = each.what if files == 1 else f"{files} × {each.what}"
    log = SpacePart(what=what, size_bytes=files * each.size_bytes)
    if log.size_bytes < capacity.size_bytes or capacity.size_bytes not in (0, _DEFAULT_REDO_LOG_CAPACITY):
        log = capacity
    return [log] if log.size_bytes > 0 else []


def _binary_log(settings: Mapping[str, str], written_bytes_per_s: float) -> tuple[list[SpacePart], str]:
    seconds, days = (_number(settings, name) for name in ("binlog_expire_logs_seconds", "expire_logs_days"))
    if seconds is None and days is None:
        return [], "unless binary logs expire"
    kept_s = (seconds or 0.0) or (days or 0.0) * _DAY_S
    if kept_s == 0:
        return [], "since binary logs never expire"
    name = "binlog_expire_logs_seconds" if seconds else "expire_logs_days"
    expiring = SpacePart(
        what=f"{name} at {written_bytes_per_s / 1e6:.3g} MB/s", size_bytes=int(kept_s * written_bytes_per_s)
    )
    return [part for part in (expiring, _size(settings, "max_binlog_size")) if part.size_bytes > 0], ""


def _size(settings: Mapping[str, str], name: str) -> SpacePart:
    """The size that a setting gives, in bytes or with a unit; 0 if it gives none."""
    try:
        return SpacePart(what=name, size_bytes=parse_size_bytes(settings.get(name, ""), name))
    except TierwiseError:
        return SpacePart(what=name, size_bytes=0)


def _number(settings: Mapping[str, str], name: str) -> float | None:
    text = settings.get(name, "")
    return float(text) if text.replace(".", "", 1).isdecimal() and len(text) < 16 else None
