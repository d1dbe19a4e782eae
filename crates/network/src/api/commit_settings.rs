//! Settings of the engine that change how its commits become durable, or bounds of what else they gain, in the model's
//! terms.
//!
//! Which setting of which engine does what is data of the Python package (`data/settings`), with sources.

use serde::Deserialize;
use tierwise_work::CommitDelay;

use crate::program::Program;
use tierwise_recording::UserError;

/// Longest wait for more commits, in microseconds: PostgreSQL's largest `commit_delay`.
const MOST_DELAY_US: u32 = 100_000;

/// What differs from the recorded commits; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommitSettings {
    /// Commits do not wait for the log; none for as recorded.
    pub unflushed: Option<UnflushedCommits>,
    /// Every so manieth group of commits syncs the second log, 0 for none; none for as recorded.
    pub second_log_every: Option<u32>,
    /// Whether commits do not wait for the log's replica.
    pub without_replica: bool,
    /// Wait of a flush's leader for more commits; none for as recorded.
    pub commit_delay: Option<DelayOption>,
    /// The log has so few bytes that a flush writes one page: a bound of what fewer bytes of log gain.
    pub least_log: bool,
    /// Sessions that serve no client write no pages of tables and take no processor time: a bound of what fewer
    /// checkpoints gain.
    pub without_page_writes: bool,
}

/// Commits that are acknowledged before the log is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnflushedCommits {
    /// A thread that no session waits for flushes the log at this interval, in microseconds.
    pub flush_period_us: u32,
    /// Whether each commit still writes the log to the page cache, which takes its processor time.
    pub writes: bool,
}

/// See [`CommitDelay`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayOption {
    /// How long, in microseconds; 0 for no wait.
    pub time_us: u32,
    /// It waits if at least this many other sessions are in a transaction that commits.
    pub siblings: u32,
}

impl CommitSettings {
    /// The wait of a flush's leader, `recorded` unless it is set.
    pub(crate) fn commit_delay(&self, recorded: Option<CommitDelay>) -> Option<CommitDelay> {
        let Some(asked) = self.commit_delay else {
            return recorded;
        };
        (asked.time_us > 0).then_some(CommitDelay {
            time_ns: asked.time_us.saturating_mul(1000),
            siblings: asked.siblings,
            from_settings: true,
        })
    }

    /// Checks that the recorded commits have what is changed.
    pub(crate) fn check(&self, program: &Program) -> Result<(), UserError> {
        let work = &program.work;
        let second_log = work.scripts.iter().any(|script| script.shared);
        let delay = self.commit_delay.map_or(0, |delay| delay.time_us);
        let period = self
            .unflushed
            .map_or(1, |unflushed| unflushed.flush_period_us);
        let rules = [
            (
                self.unflushed.is_none() && self.commit_delay.is_none() && !self.least_log
                    || work.log.is_some(),
                "the recording shows no commit that waits for the log",
            ),
            (
                self.second_log_every.is_none() || second_log,
                "the recording shows no commit that waits for a binary log",
            ),
            (
                !self.without_replica || program.waits_for_replica(),
                "the recording shows no commit that waits for a replica on this machine, and waits for one \
                 elsewhere are not modelled",
            ),
            (
                self.unflushed.is_none() || !work.replica_elsewhere,
                "commits wait for a replica elsewhere, and what they gain without that wait is not modelled",
            ),
            (
                delay <= MOST_DELAY_US,
                "the wait for more commits is longer than 100 ms",
            ),
            (period > 0, "the log is flushed without a pause"),
        ];
        let broken = rules.iter().find(|rule| !rule.0);
        broken.map_or(Ok(()), |rule| {
            Err(UserError::new(
                rule.1,
                "leave out the setting, or give another value",
            ))
        })
    }
}
