//! Rules of each engine, as data. No code elsewhere checks an engine's name.
//!
//! An engine without rules here has [`INFERRED`]: mechanisms that its recordings do not show are left out,
//! and the limits of the work say so.

use std::collections::BTreeMap;
use std::str::FromStr;

use tierwise_recording::Role;

use crate::{CommitDelay, CommitGrouping};

static ENGINES: [EngineRules; 5] = [POSTGRESQL, MARIADB, MYSQL, SQLITE, ROCKSDB];
static WITHOUT_RULES: EngineRules = INFERRED;

pub(crate) fn engine_rules(name: &str) -> &'static EngineRules {
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
    flush_sharing: FlushSharing::UnlessOverlapping(CommitGrouping::LeaderFollower),
    buffer_setting: Some("shared_buffers"),
    commit_settings: &[
        CommitSetting {
            name: "fsync",
            matters: EffectiveSettingValues::If(&["off"]),
            meaning: "nothing is made durable",
            for_replica: false,
        },
        CommitSetting {
            name: "synchronous_commit",
            matters: EffectiveSettingValues::If(&["off"]),
            meaning: "commits do not wait for the log",
            for_replica: false,
        },
        CommitSetting {
            name: "synchronous_standby_names",
            matters: EffectiveSettingValues::Unless(&[""]),
            meaning: "commits wait for synchronous replicas: those waits are not modelled, and no device of this \
                      server shortens them",
            for_replica: true,
        },
    ],
    // https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-SYNCHRONOUS-COMMIT
    without_replica: Some(("synchronous_commit", &["local", "off"])),
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
    flush_sharing: FlushSharing::UnlessOverlapping(CommitGrouping::Relay),
    second_log: Some(Role::Archive),
    buffer_setting: Some("innodb_buffer_pool_size"),
    direct_io: Some(DirectIoSetting {
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
            matters: EffectiveSettingValues::Unless(&["1"]),
            meaning: "commits do not wait until the redo log is durable",
            for_replica: false,
        },
        CommitSetting {
            name: "sync_binlog",
            matters: EffectiveSettingValues::Unless(&["1"]),
            meaning: "commits do not all wait until the binary log is durable, if there is one",
            for_replica: false,
        },
        CommitSetting {
            name: "binlog_group_commit_sync_delay",
            matters: EffectiveSettingValues::Unless(&["0"]),
            meaning: "each flush of the binary log waits for more commits first: these waits stay as recorded",
            for_replica: false,
        },
        CommitSetting {
            name: "binlog_commit_wait_count",
            matters: EffectiveSettingValues::Unless(&["0"]),
            meaning: "each flush of the binary log waits for more commits first: these waits stay as recorded",
            for_replica: false,
        },
        CommitSetting {
            name: "rpl_semi_sync_master_enabled",
            matters: EffectiveSettingValues::If(&["ON", "1"]),
            meaning: "commits wait for semi-synchronous replicas: those waits are not modelled",
            for_replica: true,
        },
        CommitSetting {
            name: "rpl_semi_sync_source_enabled",
            matters: EffectiveSettingValues::If(&["ON", "1"]),
            meaning: "commits wait for semi-synchronous replicas: those waits are not modelled",
            for_replica: true,
        },
    ],
    // A header and the command's byte are all of COM_PING; COM_QUERY has text after them.
    least_statement: (6, 0),
    ..INFERRED
};

/// InnoDB's settings are those of MariaDB. How commits share flushes is not known: sql/binlog.cc,
/// `MYSQL_BIN_LOG::ordered_commit`, flushes the redo log once for the queue of the binary log.
const MYSQL: EngineRules = EngineRules {
    name: "mysql",
    flush_sharing: FlushSharing::Inferred,
    second_log: None,
    ..MARIADB
};

/// Sources: https://sqlite.org/lockingv3.html; the log's format, https://sqlite.org/fileformat2.html#walformat.
const SQLITE: EngineRules = EngineRules {
    name: "sqlite",
    flush_sharing: FlushSharing::Always(CommitGrouping::Exclusive),
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
    flush_sharing: FlushSharing::Always(CommitGrouping::WriteGroup),
    ..INFERRED
};

// The rules of an engine.

pub(crate) type EngineSettings = BTreeMap<String, String>;

/// The rules of one engine.
#[derive(Debug, PartialEq)]
pub(crate) struct EngineRules {
    /// Substring of the engine's name in a recording, in lower case; empty for an engine without rules.
    name: &'static str,
    /// How commits share flushes of the log.
    pub(crate) flush_sharing: FlushSharing,
    /// Role of a second log that commits wait for: one session syncs it for all that wait.
    pub(crate) second_log: Option<Role>,
    /// Setting with the size of the engine's own page buffer.
    buffer_setting: Option<&'static str>,
    /// Setting that makes the engine read files past the page cache.
    direct_io: Option<DirectIoSetting>,
    /// Setting of the wait of a flush's leader, in microseconds; setting and default of the number of other open
    /// transactions that it needs.
    commit_delay: Option<(&'static str, (&'static str, u32))>,
    /// A write-ahead log from which commits move pages to their places.
    write_ahead_log: Option<WriteAheadLog>,
    /// Settings that change what a commit waits for, beyond what recorded flushes show.
    commit_settings: &'static [CommitSetting],
    /// A setting, and its values with which commits wait for no replica.
    without_replica: Option<(&'static str, &'static [&'static str])>,
    /// Least bytes of a request that runs a statement, and of its reply; fewer are a ping, as pools of connections send.
    least_statement: (u64, u64),
    /// Delays between the attempts of a session to get the write lock, the last one repeated; empty where
    /// waiters are woken.
    pub(crate) retry_ns: &'static [u64],
}

/// How commits share flushes of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FlushSharing {
    /// Always the same way.
    Always(CommitGrouping),
    /// One way, unless the recorded flushes of one file overlap: then no commit waits for another's flush.
    UnlessOverlapping(CommitGrouping),
    /// Unknown: inferred from which threads wake which after a flush.
    Inferred,
}

/// A setting that makes an engine read files past the page cache.
#[derive(Debug, PartialEq)]
pub(crate) struct DirectIoSetting {
    setting: &'static str,
    value: &'static str,
    /// Roles of the affected files.
    roles: &'static [Role],
}

/// A setting that changes what a commit waits for.
#[derive(Debug, PartialEq)]
pub(crate) struct CommitSetting {
    name: &'static str,
    /// Whether a value of it does so.
    matters: EffectiveSettingValues,
    /// What follows, as the beginning of a sentence.
    meaning: &'static str,
    /// Whether it is a wait for a replica, which the recording may show.
    for_replica: bool,
}

/// Values of a setting that matter.
#[derive(Debug, PartialEq)]
pub(crate) enum EffectiveSettingValues {
    /// One of these.
    If(&'static [&'static str]),
    /// Any but these.
    Unless(&'static [&'static str]),
}

/// A log that holds whole pages, in frames, until their number triggers a checkpoint that moves them to their
/// places.
#[derive(Debug, PartialEq)]
pub(crate) struct WriteAheadLog {
    /// The setting, and its value, that enable this log.
    kept: (&'static str, &'static str),
    /// Length of the header, which restarts the log.
    pub(crate) header_bytes: u64,
}

const INFERRED: EngineRules = EngineRules {
    name: "",
    flush_sharing: FlushSharing::Inferred,
    second_log: None,
    buffer_setting: None,
    direct_io: None,
    commit_delay: None,
    write_ahead_log: None,
    commit_settings: &[],
    without_replica: None,
    least_statement: (0, 0),
    retry_ns: &[],
};

impl EngineRules {
    pub(crate) fn has_one_writer(&self) -> bool {
        self.flush_sharing == FlushSharing::Always(CommitGrouping::Exclusive)
    }

    /// Whether a request of so many bytes, with a reply of so many, runs no statement.
    pub(crate) fn is_ping(&self, (received, sent): (u64, u64)) -> bool {
        let (request, reply) = self.least_statement;
        received > 0 && sent > 0 && (received < request || sent < reply)
    }

    /// Whether it is known which setting has the size of the engine's own page buffer.
    pub(crate) fn has_buffer_rule(&self) -> bool {
        self.buffer_setting.is_some()
    }

    /// Size of the engine's own page buffer; 0 if it is not known.
    pub(crate) fn buffer_bytes(&self, settings: &EngineSettings) -> u64 {
        let set = self.buffer_setting.and_then(|name| settings.get(name));
        set.and_then(|size| parse_size_bytes(size)).unwrap_or(0)
    }

    /// Roles whose files the engine reads past the page cache.
    pub(crate) fn past_page_cache(&self, settings: &EngineSettings) -> &'static [Role] {
        let set = |by: &&DirectIoSetting| {
            let value = settings.get(by.setting);
            value.is_some_and(|value| value.contains(by.value))
        };
        let by = self.direct_io.as_ref().filter(set);
        by.map_or(&[], |by| by.roles)
    }

    /// The wait of a flush's leader for more commits, as the settings say it; none if they do not.
    pub(crate) fn commit_delay(&self, settings: &EngineSettings) -> Option<CommitDelay> {
        let (delay, (siblings, usual)) = self.commit_delay?;
        let us: u32 = numeric_setting(settings, delay)?;
        Some(CommitDelay {
            time_ns: us.checked_mul(1_000)?,
            siblings: numeric_setting(settings, siblings).unwrap_or(usual),
            from_settings: true,
        })
    }

    /// What the settings say of commits beyond the recorded flushes, as sentences; `replica`: whether the recording has
    /// the threads of one.
    pub(crate) fn commit_limits(&self, settings: &EngineSettings, replica: bool) -> Vec<String> {
        let set = self.in_force(settings).filter_map(|(setting, value)| {
            let shown = format!("{} ({} = {value})", setting.meaning, setting.name);
            (!(setting.for_replica && replica)).then_some(shown)
        });
        set.collect()
    }

    /// Whether commits wait for a replica, on this machine or elsewhere.
    pub(crate) fn waits_for_replica(&self, settings: &EngineSettings) -> bool {
        self.in_force(settings)
            .any(|(setting, _)| setting.for_replica)
    }

    /// The settings that change what a commit waits for, with their values.
    fn in_force<'a>(
        &self,
        settings: &'a EngineSettings,
    ) -> impl Iterator<Item = (&'static CommitSetting, &'a str)> {
        // https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-SYNCHRONOUS-COMMIT
        let alone = self.without_replica.is_some_and(|(name, values)| {
            let value = settings.get(name);
            value.is_some_and(|value| values.contains(&value.as_str()))
        });
        self.commit_settings.iter().filter_map(move |setting| {
            let value = settings.get(setting.name)?.as_str();
            let matters = match setting.matters {
                EffectiveSettingValues::If(values) => values.contains(&value),
                EffectiveSettingValues::Unless(values) => !values.contains(&value),
            };
            (matters && !(setting.for_replica && alone)).then_some((setting, value))
        })
    }

    /// Number of other open transactions that this wait needs by default.
    pub(crate) fn usual_siblings(&self) -> u32 {
        self.commit_delay.map_or(1, |(_, (_, usual))| usual)
    }

    /// The write-ahead log, if the settings enable one.
    pub(crate) fn write_ahead_log(&self, settings: &EngineSettings) -> Option<&WriteAheadLog> {
        let log = self.write_ahead_log.as_ref()?;
        let (name, value) = log.kept;
        let kept = settings.get(name).is_some_and(|mode| mode == value);
        kept.then_some(log)
    }
}

fn numeric_setting<T: FromStr>(settings: &EngineSettings, name: &str) -> Option<T> {
    settings.get(name)?.parse().ok()
}

/// A size: a number with the unit kB, MB or GB, of 1,024 each, or without a unit.
fn parse_size_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let shift = match unit.trim() {
        "" | "B" => 0,
        "kB" | "K" => 10,
        "MB" | "M" => 20,
        "GB" | "G" => 30,
        "TB" | "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn rules_are_found_by_a_part_of_the_name() {
        assert_eq!(engine_rules("PostgreSQL"), &POSTGRESQL);
        assert_eq!(engine_rules("mariadb-system"), &MARIADB);
        assert_eq!(engine_rules("mysql"), &MYSQL);
        assert_eq!(engine_rules("toy"), &INFERRED);
        assert_eq!(engine_rules(""), &INFERRED);
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
        let waits = |commit: &str| {
            let settings = [(names, "set"), ("synchronous_commit", commit)];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
            POSTGRESQL.waits_for_replica(&BTreeMap::from(settings))
        };
        assert_eq!(
            ["remote_apply", "on", "local", "off"].map(waits),
            [true, true, false, false]
        );
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
