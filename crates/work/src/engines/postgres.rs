//! PostgreSQL.

use super::rules::{EngineRules, FlushSharing, INFERRED};
use crate::Grouping;

/// Source: src/backend/access/transam/xlog.c, `XLogFlush`: whoever gets the write lock flushes all that is in the log;
/// its release wakes all who wait (`LWLockAcquireOrWait`), and one of those that were not covered flushes next.
pub(super) const RULES: EngineRules = EngineRules {
    name: "postgres",
    flush_sharing: FlushSharing::UnlessOverlapping(Grouping::LeaderFollower),
    buffer_setting: Some("shared_buffers"),
    ..INFERRED
};
