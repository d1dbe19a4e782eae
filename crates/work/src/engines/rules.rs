//! The rules of an engine.

use std::collections::BTreeMap;
use std::str::FromStr;

use tierwise_recording::Role;

use crate::{CommitDelay, Grouping};

pub(crate) type Settings = BTreeMap<String, String>;

/// The rules of one engine.
#[derive(Debug, PartialEq)]
pub(crate) struct EngineRules {
    /// Substring of the engine's name in a recording, in lower case; empty for an engine without rules.
    pub(super) name: &'static str,
    /// How commits share flushes of the log.
    pub(crate) flush_sharing: FlushSharing,
    /// Role of a second log that commits wait for: one session syncs it for all that wait.
    pub(crate) second_log: Option<Role>,
    /// Setting with the size of the engine's own page buffer.
    pub(super) buffer_setting: Option<&'static str>,
    /// Setting that makes the engine read files past the page cache.
    pub(super) direct_io: Option<DirectIo>,
    /// Setting of the wait of a flush's leader, in microseconds; setting and default of the number of other open
    /// transactions that it needs.
    pub(super) commit_delay: Option<(&'static str, (&'static str, u32))>,
    /// A write-ahead log from which commits move pages to their places.
    pub(super) write_ahead_log: Option<WriteAheadLog>,
    /// Settings that change what a commit waits for, beyond what recorded flushes show.
    pub(super) commit_settings: &'static [CommitSetting],
    /// Least bytes of a request that runs a statement, and of its reply; fewer are a ping, as pools of connections send.
    pub(super) least_statement: (u64, u64),
    /// Delays between the attempts of a session to get the write lock, the last one repeated; empty where
    /// waiters are woken.
    pub(crate) retry_ns: &'static [u64],
}

/// How commits share flushes of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FlushSharing {
    /// Always the same way.
    Always(Grouping),
    /// One way, unless the recorded flushes of one file overlap: then no commit waits for another's flush.
    UnlessOverlapping(Grouping),
    /// Unknown: inferred from which threads wake which after a flush.
    Inferred,
}

/// A setting that makes an engine read files past the page cache.
#[derive(Debug, PartialEq)]
pub(crate) struct DirectIo {
    pub(super) setting: &'static str,
    pub(super) value: &'static str,
    /// Roles of the affected files.
    pub(super) roles: &'static [Role],
}

/// A setting that changes what a commit waits for.
#[derive(Debug, PartialEq)]
pub(crate) struct CommitSetting {
    pub(super) name: &'static str,
    /// Whether a value of it does so.
    pub(super) matters: Matters,
    /// What follows, as the beginning of a sentence.
    pub(super) meaning: &'static str,
    /// Whether it is a wait for a replica, which the recording may show.
    pub(super) for_replica: bool,
}

/// Values of a setting that matter.
#[derive(Debug, PartialEq)]
pub(crate) enum Matters {
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
    pub(super) kept: (&'static str, &'static str),
    /// Length of the header, which restarts the log.
    pub(crate) header_bytes: u64,
}

pub(super) const INFERRED: EngineRules = EngineRules {
    name: "",
    flush_sharing: FlushSharing::Inferred,
    second_log: None,
    buffer_setting: None,
    direct_io: None,
    commit_delay: None,
    write_ahead_log: None,
    commit_settings: &[],
    least_statement: (0, 0),
    retry_ns: &[],
};

impl EngineRules {
    pub(crate) fn has_one_writer(&self) -> bool {
        self.flush_sharing == FlushSharing::Always(Grouping::Exclusive)
    }

    /// Whether a request of so many bytes, with a reply of so many, runs no statement.
    pub(crate) fn is_ping(&self, (received, sent): (u64, u64)) -> bool {
        let (request, reply) = self.least_statement;
        received > 0 && sent > 0 && (received < request || sent < reply)
    }

    /// Size of the engine's own page buffer; 0 if it is not known.
    pub(crate) fn buffer_bytes(&self, settings: &Settings) -> u64 {
        let set = self.buffer_setting.and_then(|name| settings.get(name));
        set.and_then(|size| size_bytes(size)).unwrap_or(0)
    }

    /// Roles whose files the engine reads past the page cache.
    pub(crate) fn past_page_cache(&self, settings: &Settings) -> &'static [Role] {
        let set = |by: &&DirectIo| {
            let value = settings.get(by.setting);
            value.is_some_and(|value| value.contains(by.value))
        };
        let by = self.direct_io.as_ref().filter(set);
        by.map_or(&[], |by| by.roles)
    }

    /// The wait of a flush's leader for more commits, as the settings say it; none if they do not.
    pub(crate) fn commit_delay(&self, settings: &Settings) -> Option<CommitDelay> {
        let (delay, (siblings, usual)) = self.commit_delay?;
        let us: u32 = number(settings, delay)?;
        Some(CommitDelay {
            time_ns: us.checked_mul(1_000)?,
            siblings: number(settings, siblings).unwrap_or(usual),
            from_settings: true,
        })
    }

    /// What the settings say of commits beyond the recorded flushes, as sentences; `replica`: whether the recording has
    /// the threads of one.
    pub(crate) fn commit_limits(&self, settings: &Settings, replica: bool) -> Vec<String> {
        let set = self.commit_settings.iter().filter_map(|setting| {
            let value = settings.get(setting.name)?;
            let matters = match setting.matters {
                Matters::If(values) => values.contains(&value.as_str()),
                Matters::Unless(values) => !values.contains(&value.as_str()),
            };
            let shown = format!("{} ({} = {value})", setting.meaning, setting.name);
            (matters && !(setting.for_replica && replica)).then_some(shown)
        });
        set.collect()
    }

    /// Number of other open transactions that this wait needs by default.
    pub(crate) fn usual_siblings(&self) -> u32 {
        self.commit_delay.map_or(1, |(_, (_, usual))| usual)
    }

    /// The write-ahead log, if the settings enable one.
    pub(crate) fn write_ahead_log(&self, settings: &Settings) -> Option<&WriteAheadLog> {
        let log = self.write_ahead_log.as_ref()?;
        let (name, value) = log.kept;
        let kept = settings.get(name).is_some_and(|mode| mode == value);
        kept.then_some(log)
    }
}

fn number<T: FromStr>(settings: &Settings, name: &str) -> Option<T> {
    settings.get(name)?.parse().ok()
}

/// A size: a number with the unit kB, MB or GB, of 1,024 each, or without a unit.
fn size_bytes(text: &str) -> Option<u64> {
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
