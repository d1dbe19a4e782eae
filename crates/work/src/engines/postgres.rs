//! PostgreSQL.

use super::rules::{EngineRules, FlushSharing, INFERRED};
use crate::Grouping;

/// Source: src/backend/access/transam/xlog.c, `XLogFlush`: the holder of the write lock flushes all that is
/// in the log; its release wakes all waiters (`LWLockAcquireOrWait`), and one of those not covered flushes
/// next.
pub(super) const RULES: EngineRules = EngineRules {
    name: "postgres",
    flush_sharing: FlushSharing::UnlessOverlapping(Grouping::LeaderFollower),
    buffer_setting: Some("shared_buffers"),
    ..INFERRED
};
