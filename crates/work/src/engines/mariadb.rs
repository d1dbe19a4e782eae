//! MariaDB with InnoDB.

use tierwise_recording::Role;

use super::rules::{CommitSetting, DirectIo, EngineRules, FlushSharing, INFERRED, Matters};
use crate::Grouping;

/// Source: storage/innobase/log/log0sync.cc, `group_commit_lock`: its release wakes all covered waiters, and
/// one of the others to lead. The binary log: sql/log.cc, `MYSQL_BIN_LOG::trx_group_commit_leader`: the first in the
/// queue writes and syncs for all in it; those that come meanwhile queue for the next.
pub(super) const RULES: EngineRules = EngineRules {
    name: "mariadb",
    flush_sharing: FlushSharing::UnlessOverlapping(Grouping::Relay),
    second_log: Some(Role::Archive),
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
    commit_settings: &[
        CommitSetting {
            name: "innodb_flush_log_at_trx_commit",
            matters: Matters::Unless(&["1"]),
            meaning: "commits do not wait until the redo log is durable",
            for_replica: false,
        },
        CommitSetting {
            name: "sync_binlog",
            matters: Matters::Unless(&["1"]),
            meaning: "commits do not all wait until the binary log is durable, if there is one",
            for_replica: false,
        },
        CommitSetting {
            name: "binlog_group_commit_sync_delay",
            matters: Matters::Unless(&["0"]),
            meaning: "each flush of the binary log waits for more commits first: these waits stay as recorded",
            for_replica: false,
        },
        CommitSetting {
            name: "binlog_commit_wait_count",
            matters: Matters::Unless(&["0"]),
            meaning: "each flush of the binary log waits for more commits first: these waits stay as recorded",
            for_replica: false,
        },
        CommitSetting {
            name: "rpl_semi_sync_master_enabled",
            matters: Matters::If(&["ON", "1"]),
            meaning: "commits wait for semi-synchronous replicas: those waits are not modelled",
            for_replica: true,
        },
        CommitSetting {
            name: "rpl_semi_sync_source_enabled",
            matters: Matters::If(&["ON", "1"]),
            meaning: "commits wait for semi-synchronous replicas: those waits are not modelled",
            for_replica: true,
        },
    ],
    // A header and the command's byte are all of COM_PING; COM_QUERY has text after them.
    least_statement: (6, 0),
    ..INFERRED
};
