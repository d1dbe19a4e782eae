//! MariaDB with InnoDB.

use tierwise_recording::Role;

use super::rules::{DirectIo, EngineRules, FlushSharing, INFERRED};
use crate::Grouping;

/// Source: storage/innobase/log/log0sync.cc, `group_commit_lock`: its release wakes all covered waiters, and
/// one of the others to lead.
pub(super) const RULES: EngineRules = EngineRules {
    name: "mariadb",
    flush_sharing: FlushSharing::UnlessOverlapping(Grouping::Relay),
    buffer_setting: Some("innodb_buffer_pool_size"),
    direct_io: Some(DirectIo {
        setting: "innodb_flush_method",
        value: "O_DIRECT",
        roles: &[
            Role::Data,
            Role::Index,
            Role::Undo,
            Role::System,
            Role::Doublewrite,
        ],
    }),
    ..INFERRED
};
