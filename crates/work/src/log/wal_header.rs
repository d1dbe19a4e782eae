//! Header of a write-ahead log, and whether the recorded engine keeps such a log.

use tierwise_recording::{Call, CallKind, Role};

use crate::engines::WriteAheadLog;
use crate::index::rows::Rows;

/// Whether a call writes the header of the log, which restarts it.
pub(crate) fn is_header(rows: &Rows<'_>, call: &Call) -> bool {
    call.kind == CallKind::Write
        && call.offset_bytes == 0
        && rows.role(call.file) == Some(Role::Log)
        && kept(rows).is_some_and(|log| call.size_bytes == log.header_bytes)
}

/// The log, if the engine keeps a write-ahead log.
pub(crate) fn kept(rows: &Rows<'_>) -> Option<&'static WriteAheadLog> {
    let settings = &rows.recording.about.settings;
    rows.engine.write_ahead_log(settings)
}
