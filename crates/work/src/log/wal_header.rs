//! Header of SQLite's write-ahead log, and whether the recorded engine keeps such a log.

use tierwise_recording::{Call, CallKind, Role};

use crate::index::rows::Rows;

/// The log's header, which begins it anew.
pub(crate) const HEADER_BYTES: u64 = 32;

/// Whether a call writes the header of the log: what follows begins it anew.
pub(crate) fn is_header(rows: &Rows<'_>, call: &Call) -> bool {
    call.kind == CallKind::Write
        && (call.offset_bytes, call.size_bytes) == (0, HEADER_BYTES)
        && rows.role(call.file) == Some(Role::Log)
        && is_kept(rows)
}

/// Whether the engine keeps such a log.
pub(crate) fn is_kept(rows: &Rows<'_>) -> bool {
    let about = &rows.recording.about;
    let mode = about.settings.get("journal_mode");
    about.engine.to_lowercase().contains("sqlite") && mode.is_some_and(|mode| mode == "wal")
}
