//! Demands and waits of a transaction, as recorded: for bounds that hold without a simulation.

use std::collections::BTreeMap;

use serde::Serialize;
use tierwise_recording::Role;
use tierwise_work::{LogRules, Step, TimeCategory};

use crate::program::{Program, reads};

/// Means over the client sessions' transactions; over their turns where the recording shows no transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Demands {
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
    pub(crate) fn demands(&self) -> Demands {
        let mut demands = Demands::default();
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
                Step::Read { role, .. } | Step::Submit { role, .. } if reads(step) => {
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
        let freed = observed.rate_ratio.unwrap_or(1.0);
        let rate_per_s = match observed.transactions_per_s {
            0.0 => observed.turns_per_s,
            rate_per_s => rate_per_s,
        };
        // Rates are corrected for recording overhead; bursts contain fewer transactions.
        let counted = rate_per_s * freed * observed.span_ns as f64 / 1e9;
        let summary =
            |&(category, role, time_ns): &(TimeCategory, Option<Role>, u64)| WaitSummary {
                category: category.name(),
                role,
                time_us: time_ns as f64 / 1e3 * freed / counted.max(1.0),
            };
        observed.waits.iter().map(summary).collect()
    }
}
