//! Predicates on single calls.

use tierwise_recording::{Call, CallKind, UNKNOWN};

/// Whether a call waits until data is durable; `sync_file_range`, which has a range, does not.
pub(crate) fn makes_durable(call: &Call) -> bool {
    call.kind == CallKind::Sync && (call.offset_bytes == UNKNOWN || call.size_bytes == 0)
}
