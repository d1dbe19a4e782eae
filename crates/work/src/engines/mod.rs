//! Rules of each engine, as data. No code elsewhere checks an engine's name.
//!
//! An engine without rules here has [`INFERRED`]: mechanisms that its recordings do not show are left out,
//! and the limits of the work say so.

mod rules;

use tierwise_recording::Role;

use crate::Grouping;
use rules::{CommitSetting, DirectIo, INFERRED, Matters};

pub(crate) use rules::{EngineRules, FlushSharing, WriteAheadLog};

static ENGINES: [EngineRules; 4] = [POSTGRESQL, MARIADB, SQLITE, ROCKSDB];
static WITHOUT_RULES: EngineRules = INFERRED;

pub(crate) fn rules_of(name: &str) -> &'static EngineRules {
    let name = name.to_lowercase();
    let mut known = ENGINES.iter();
    known
        .find(|rules| name.contains(rules.name))
        .unwrap_or(&WITHOUT_RULES)
}

/// Source: src/backend/access/transam/xlog.c, `XLogFlush`: the holder of the write lock flushes all that is
/// in the log; its release wakes all waiters (`LWLockAcquireOrWait`), and one of those not covered flushes
/// next.
const POSTGRESQL: EngineRules = EngineRules {
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

/// Source: storage/innobase/log/log0sync.cc, `group_commit_lock`: its release wakes all covered waiters, and
/// one of the others to lead. The binary log: sql/log.cc, `MYSQL_BIN_LOG::trx_group_commit_leader`: the first in the
/// queue writes and syncs for all in it; those that come meanwhile queue for the next.
const MARIADB: EngineRules = EngineRules {
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
            Role::Selected,
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

/// Sources: https://sqlite.org/lockingv3.html; the log's format, https://sqlite.org/fileformat2.html#walformat.
const SQLITE: EngineRules = EngineRules {
    name: "sqlite",
    flush_sharing: FlushSharing::Always(Grouping::Exclusive),
    write_ahead_log: Some(WriteAheadLog {
        kept: ("journal_mode", "wal"),
        header_bytes: 32,
    }),
    // The busy handler's sleeps between attempts (sqlite3.c, `sqliteDefaultBusyCallback`).
    retry_ns: &[
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        15_000_000,
        20_000_000,
        25_000_000,
        25_000_000,
        25_000_000,
        50_000_000,
        50_000_000,
        100_000_000,
    ],
    ..INFERRED
};

/// Source: db/write_thread.cc: a leader writes for the group of writers that wait when it starts.
const ROCKSDB: EngineRules = EngineRules {
    name: "rocks",
    flush_sharing: FlushSharing::Always(Grouping::WriteGroup),
    ..INFERRED
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn rules_are_found_by_a_part_of_the_name() {
        assert_eq!(rules_of("PostgreSQL"), &POSTGRESQL);
        assert_eq!(rules_of("mariadb-system"), &MARIADB);
        assert_eq!(rules_of("toy"), &INFERRED);
        assert_eq!(rules_of(""), &INFERRED);
    }

    #[test]
    fn settings_that_commits_wait_for_are_named() {
        let limits = |rules: &EngineRules, name: &str, value: &str, replica| {
            let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            rules.commit_limits(&settings, replica)
        };
        let standby = limits(&POSTGRESQL, "synchronous_standby_names", "set", false);
        assert!(standby[0].contains("not modelled") && standby[0].contains("= set"));
        let names = "synchronous_standby_names";
        assert!(limits(&POSTGRESQL, names, "", false).is_empty());
        assert!(
            limits(&POSTGRESQL, names, "set", true).is_empty(),
            "it was recorded"
        );
        assert_eq!(
            limits(&POSTGRESQL, "synchronous_commit", "off", false).len(),
            1
        );
        assert!(limits(&POSTGRESQL, "synchronous_commit", "on", false).is_empty());
        for (name, value) in [
            ("innodb_flush_log_at_trx_commit", "2"),
            ("sync_binlog", "0"),
            ("binlog_group_commit_sync_delay", "1000"),
            ("rpl_semi_sync_master_enabled", "ON"),
        ] {
            assert_eq!(limits(&MARIADB, name, value, false).len(), 1, "{name}");
        }
        assert!(limits(&MARIADB, "innodb_flush_log_at_trx_commit", "1", false).is_empty());
        let delay = |value: &str| {
            let settings = BTreeMap::from([("commit_delay".to_owned(), value.to_owned())]);
            POSTGRESQL.commit_delay(&settings)
        };
        assert_eq!(
            delay("20000").map(|delay| (delay.time_ns, delay.siblings)),
            Some((20_000_000, 5))
        );
        assert_eq!(delay("-1"), None);
    }

    #[test]
    fn pings_are_told_from_the_shortest_statements() {
        // lib/pq's ";", a driver's empty statement, DO; COM_PING, and COM_QUERY with one letter.
        let postgres = [(7, 11), (6, 11), (20, 14)].map(|shape| POSTGRESQL.is_ping(shape));
        assert_eq!(postgres, [true, true, false]);
        let mariadb = [(5, 11), (6, 11), (0, 11)].map(|shape| MARIADB.is_ping(shape));
        assert_eq!(mariadb, [true, false, false]);
        assert!(!INFERRED.is_ping((1, 1)));
    }

    #[test]
    fn settings_are_read_by_their_engine_alone() {
        let direct = ("innodb_flush_method".to_owned(), "O_DIRECT".to_owned());
        let settings = BTreeMap::from([direct]);
        assert!(!MARIADB.past_page_cache(&settings).is_empty());
        assert!(POSTGRESQL.past_page_cache(&settings).is_empty());
    }
}
