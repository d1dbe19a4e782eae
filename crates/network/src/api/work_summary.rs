//! Summary of a recording's work.

use std::collections::BTreeMap;

use serde::Serialize;
use tierwise_recording::{Role, SECTOR_BYTES};
use tierwise_work::{CommitGrouping, LogRules, PageCache, Step, TimeCategory, UnassignedFile};

use crate::api::reproduction::{recorded_run_mode, recorded_run_ns};
use crate::api::scenario::ReplayMode;
use crate::program::{Program, reads_missed_pages};

/// Summary of a recording's work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkSummary {
    /// Cores of the recorded machine.
    pub cores: u32,
    /// Memory of the recorded machine, in bytes.
    pub memory_bytes: u64,
    /// Client sessions.
    pub sessions: usize,
    /// Turns of client sessions.
    pub turns: usize,
    /// Transactions of client sessions.
    pub transactions: usize,
    /// Recorded time, in seconds; of work done once, from its begin to its end.
    pub span_s: f64,
    /// Whether the work is done once, rather than repeated.
    pub once: bool,
    /// How commits share a flush, if there is a log.
    pub engine_log: Option<&'static str>,
    /// Bytes in use of each role.
    pub footprints: BTreeMap<&'static str, u64>,
    /// Wait of a flush's leader for more commits, in microseconds, if the engine has one.
    pub commit_delay_us: Option<f64>,
    /// Devices of the recording.
    pub devices: Vec<DeviceSummary>,
    /// Observed values.
    pub observed: ObservedSummary,
    /// Demands and waits of a transaction.
    pub demands: TransactionDemands,
    /// Locks held over commits.
    pub locks: Vec<LockSummary>,
    /// Whether another size of memory can be predicted.
    pub can_change_memory: bool,
    /// The reason, if it cannot.
    pub memory_reason: String,
    /// The part of memory that held pages of files.
    pub page_cache: PageCache,
    /// Files without a role that matter.
    pub unassigned: Vec<UnassignedFile>,
    /// Limits of the recording.
    pub limits: Vec<String>,
}

/// A device of the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// Summary of its profile, if it was emulated.
    pub profile: Option<String>,
    /// Roles on it.
    pub roles: Vec<Role>,
}

/// Observed values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObservedSummary {
    /// Turns a second.
    pub turns_per_s: f64,
    /// Transactions a second.
    pub transactions_per_s: f64,
    /// Separately counted transactions per transaction that the events show; none if the counts agree.
    pub counted_per_shown: Option<f64>,
    /// Whether transactions are slices of the recorded time, as the events show hardly a request or a commit.
    pub sliced: bool,
    /// Median latency of transactions.
    pub p50_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Whether transactions arrive by a schedule of their own.
    pub arrive: bool,
    /// Commits per flush.
    pub commits_per_flush: f64,
    /// Share of the cores that were busy.
    pub busy_share: f64,
    /// Shares of the sessions' time.
    pub shares: BTreeMap<String, f64>,
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockSummary {
    /// Description.
    pub name: String,
    /// Keys.
    pub keys: u32,
    /// Share of the sessions' time.
    pub observed_share: f64,
}

impl Program {
    /// Summarises the work.
    #[must_use]
    pub fn summary(&self) -> WorkSummary {
        let work = &self.work;
        let memory = self.memory_reason();
        WorkSummary {
            cores: work.cores,
            memory_bytes: work.memory_bytes,
            sessions: self.clients,
            turns: self.client_turns(),
            transactions: self.counted(self.transactions() as u64) as usize,
            span_s: recorded_run_ns(self) as f64 / 1e9,
            once: recorded_run_mode(self) == ReplayMode::Once,
            engine_log: work.log.as_ref().map(|log| lock_name(log.grouping)),
            commit_delay_us: work
                .log
                .as_ref()
                .and_then(|log| log.commit_delay)
                .map(|delay| f64::from(delay.time_ns) / 1e3),
            footprints: self.footprints(),
            devices: self.device_summaries(),
            observed: self.observed_summary(),
            demands: self.demands(),
            locks: self.lock_summaries(),
            can_change_memory: memory.is_none(),
            memory_reason: memory.unwrap_or_default(),
            page_cache: work.page_cache.clone(),
            unassigned: work.unassigned.clone(),
            limits: work.limits.clone(),
        }
    }

    fn footprints(&self) -> BTreeMap<&'static str, u64> {
        let known = self.work.footprints.iter();
        known
            .map(|(role, sectors)| (role.name(), sectors * SECTOR_BYTES))
            .collect()
    }

    fn device_summaries(&self) -> Vec<DeviceSummary> {
        let devices = self.work.devices.iter().zip(&self.profiles);
        let summary =
            |(device, profile): (&tierwise_work::RecordedDevice, &Option<_>)| DeviceSummary {
                profile: profile
                    .as_ref()
                    .map(|profile: &tierwise_device::Profile| profile.summary().to_owned()),
                roles: device.roles.iter().map(|place| place.0).collect(),
            };
        devices.map(summary).collect()
    }

    fn observed_summary(&self) -> ObservedSummary {
        let observed = &self.work.observed;
        ObservedSummary {
            turns_per_s: observed.turns_per_s,
            transactions_per_s: observed.transactions_per_s,
            counted_per_shown: observed.counted_per_shown,
            sliced: observed.sliced,
            p50_us: self.observed_latency_us(0.5),
            p95_us: self.observed_latency_us(0.95),
            p99_us: self.observed_latency_us(0.99),
            arrive: observed.arrive,
            commits_per_flush: observed.commits_per_flush,
            busy_share: observed.busy_share,
            shares: observed.shares.iter().cloned().collect(),
        }
    }

    /// A percentile of the observed latencies; the lower one of two for an even number, as in outcomes.
    pub(crate) fn observed_latency_us(&self, share: f64) -> Option<f64> {
        let sorted = &self.work.observed.latencies_ns;
        let at = (sorted.len() as f64 * share).ceil().max(1.0) as usize - 1;
        sorted.get(at).map(|ns| *ns as f64 / 1e3)
    }

    fn lock_summaries(&self) -> Vec<LockSummary> {
        let summary = |lock: &tierwise_work::HotLock| LockSummary {
            name: lock.name.clone(),
            keys: lock.keys,
            observed_share: lock.observed_share,
        };
        self.work.locks.iter().map(summary).collect()
    }

    /// Why another size of memory cannot be predicted; none if it can.
    pub(crate) fn memory_reason(&self) -> Option<String> {
        let cached = |step: &Step| matches!(step, Step::CachedRead { .. });
        let mut steps = self.work.sessions.iter().flat_map(|session| &session.steps);
        let any = steps.any(|step| cached(step) || reads_missed_pages(step));
        self.work.page_cache.reason.clone().filter(|_| any)
    }
}

fn lock_name(grouping: CommitGrouping) -> &'static str {
    match grouping {
        CommitGrouping::LeaderFollower => "leader and followers",
        CommitGrouping::Relay => "leader and followers, one woken to lead next",
        CommitGrouping::WriteGroup => "write groups",
        CommitGrouping::Exclusive => "one writer",
        CommitGrouping::Alone => "each for itself",
    }
}

// Demands and waits of a transaction, as recorded: for bounds that hold without a simulation.

/// Means over the client sessions' transactions; over their turns where the recording shows no transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TransactionDemands {
    /// Time outside of the machine: the client's, in microseconds.
    pub think_us: f64,
    /// Processor time of the client, without recording overhead.
    pub client_cpu_us: f64,
    /// The same of the session's thread.
    pub server_cpu_us: f64,
    /// Processor time of a transaction's share of the log's flushes, as recorded; not part of the above.
    pub flush_cpu_us: f64,
    /// Reads that the page cache did not answer, by role.
    pub reads: BTreeMap<&'static str, f64>,
    /// Waits, by category.
    pub waits: Vec<WaitSummary>,
}

/// A kind of wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitSummary {
    /// Category of the wait, by the names of profiles.
    pub category: &'static str,
    /// Role of the file, where one was waited for.
    pub role: Option<Role>,
    /// In microseconds, without recording overhead.
    pub time_us: f64,
}

impl Program {
    /// Demands and waits of a transaction.
    pub(crate) fn demands(&self) -> TransactionDemands {
        let mut demands = TransactionDemands::default();
        for step in self.client_sessions().flat_map(|session| &session.steps) {
            match *step {
                Step::Cpu { time_ns, client } => {
                    let cpu_us = match client {
                        true => &mut demands.client_cpu_us,
                        false => &mut demands.server_cpu_us,
                    };
                    *cpu_us += f64::from(time_ns);
                }
                Step::Commit => demands.flush_cpu_us += self.flush_cpu_ns(),
                Step::Delay(delay) if !delay.timer => demands.think_us += delay.time_ns as f64,
                Step::Read { role, .. } | Step::Submit { role, .. } if reads_missed_pages(step) => {
                    *demands.reads.entry(role.name()).or_default() += 1.0;
                }
                _ => {}
            }
        }
        let shown = match self.transactions() {
            0 => self.client_turns() as f64,
            shown => self.counted(shown as u64) as f64,
        };
        let to_us = 1.0 / shown.max(1.0) / 1e3;
        for time in [
            &mut demands.think_us,
            &mut demands.client_cpu_us,
            &mut demands.server_cpu_us,
            &mut demands.flush_cpu_us,
        ] {
            *time *= to_us;
        }
        demands
            .reads
            .values_mut()
            .for_each(|count| *count /= shown.max(1.0));
        demands.waits = self.waits();
        demands
    }

    /// Flush processor time per commit, at the observed number of commits per flush.
    fn flush_cpu_ns(&self) -> f64 {
        let cpu_ns = |log: &LogRules| f64::from(log.leader_cpu_ns + log.release_cpu_ns);
        let each_ns = self.work.log.as_ref().map_or(0.0, cpu_ns);
        each_ns / self.work.observed.commits_per_flush.max(1.0)
    }

    fn waits(&self) -> Vec<WaitSummary> {
        let observed = &self.work.observed;
        let ratio = observed.rate_ratio.unwrap_or(1.0);
        let rate_per_s = match observed.transactions_per_s {
            0.0 => observed.turns_per_s,
            rate_per_s => rate_per_s,
        };
        // Rates are those between bursts.
        let counted = rate_per_s * ratio * observed.span_ns as f64 / 1e9;
        let summary =
            |&(category, role, time_ns): &(TimeCategory, Option<Role>, u64)| WaitSummary {
                category: category.name(),
                role,
                time_us: time_ns as f64 / 1e3 * ratio.min(1.0) / counted.max(1.0),
            };
        observed.waits.iter().map(summary).collect()
    }
}
