//! RocksDB.

use super::rules::{EngineRules, FlushSharing, INFERRED};
use crate::Grouping;

/// Source: db/write_thread.cc: a leader writes for the group of writers that wait when it starts.
pub(super) const RULES: EngineRules = EngineRules {
    name: "rocks",
    flush_sharing: FlushSharing::Always(Grouping::WriteGroup),
    ..INFERRED
};
