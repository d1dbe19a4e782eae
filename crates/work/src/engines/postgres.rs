//! PostgreSQL.

use super::rules::{CommitSetting, EngineRules, FlushSharing, INFERRED, Matters};
use crate::Grouping;

/// Source: src/backend/access/transam/xlog.c, `XLogFlush`: the holder of the write lock flushes all that is
/// in the log; its release wakes all waiters (`LWLockAcquireOrWait`), and one of those not covered flushes
/// next.
pub(super) const RULES: EngineRules = EngineRules {
    name: "postgres",
    flush_sharing: FlushSharing::UnlessOverlapping(Grouping::LeaderFollower),
    buffer_setting: Some("shared_buffers"),
    commit_settings: &[
        CommitSetting {
            name: "fsync",
            matters: Matters::If(&["off"]),
            meaning: "nothing is made durable",
            for_replica: false,
        },
        CommitSetting {
            name: "synchronous_commit",
            matters: Matters::If(&["off"]),
            meaning: "commits do not wait for the log",
            for_replica: false,
        },
        CommitSetting {
            name: "synchronous_standby_names",
            matters: Matters::Unless(&[""]),
            meaning: "commits wait for synchronous replicas: those waits are not modelled, and no device of this \
                      server shortens them",
            for_replica: true,
        },
    ],
    // A statement is answered by CommandComplete, whose shortest tag is DO, and by ReadyForQuery; an empty one by
    // EmptyQueryResponse in place of the first (protocol of version 3, "Message Formats").
    least_statement: (0, 14),
    commit_delay: Some(("commit_delay", ("commit_siblings", 5))),
    ..INFERRED
};
