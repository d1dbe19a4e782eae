//! The wait of a flush's leader for more commits (PostgreSQL's `commit_delay`): known from the settings, else inferred
//! from sleeps of one length before flushes.
//!
//! Source: PostgreSQL, `XLogFlush` (xlog.c): the leader sleeps with the log's lock held, if `MinimumActiveBackends`
//! finds enough others, and then flushes all that is inserted by then.

use std::collections::BTreeSet;

use tierwise_recording::{CallKind, NONE, State, StateKind, ThreadClass};

use crate::CommitDelay;
use crate::log::flushes::Flush;
use crate::rows::{Rows, median};

/// Most time on a core from the end of the wait to the flush: the leader copies and writes the log's buffer meanwhile.
const LEADER_NS: u64 = 1_000_000;
/// Least number of waits from which a delay is inferred, and the least share of the sessions' flushes.
const ENOUGH: usize = 20;
const LEAST_SHARE: f64 = 0.3;
/// Least share of the waits that last as long as the median one, within this factor of it.
const ALIKE_SHARE: f64 = 0.8;
const ALIKE_FACTOR: f64 = 1.15;
/// Shorter waits are no delay that anybody sets. Chosen: the kernel's timer slack twice.
const LEAST_NS: u64 = 100_000;

/// The delay and the waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommitDelays {
    pub(crate) rule: Option<CommitDelay>,
    /// Thread and start of each wait.
    waits: BTreeSet<(u32, u64)>,
}

impl CommitDelays {
    pub(crate) fn find(rows: &Rows<'_>, flushes: &[Flush]) -> Self {
        let settings = &rows.recording.about.settings;
        let said = rows.engine.commit_delay(settings);
        if rows.engine.has_one_writer() || said.is_some_and(|said| said.time_ns == 0) {
            return Self::default();
        }
        let of_session = |flush: &&Flush| rows.class(flush.thread) == Some(ThreadClass::Session);
        let led: Vec<&Flush> = flushes.iter().filter(of_session).collect();
        let sleeps = led.iter().filter_map(|flush| sleep_before(rows, flush));
        let sleeps: Vec<&State> = sleeps.collect();
        let lengths = sleeps.iter().map(|state| state.end_ns - state.start_ns);
        let lengths: Vec<u64> = lengths.collect();
        let rule = match said {
            Some(said) => {
                let least_ns = u64::from(said.time_ns);
                let kept = lengths.iter().copied().filter(|ns| *ns >= least_ns);
                let seen_ns = median(kept.collect()).unwrap_or(least_ns);
                let time_ns = seen_ns.min(least_ns * 2) as u32;
                Some(CommitDelay { time_ns, ..said })
            }
            None => inferred(&lengths, led.len(), rows.engine.usual_siblings()),
        };
        let waits = sleeps
            .into_iter()
            .zip(lengths)
            .filter(|&(_, length_ns)| rule.is_some_and(|rule| is_alike(length_ns, rule.time_ns)));
        Self {
            waits: waits
                .map(|(state, _)| (state.thread, state.start_ns))
                .collect(),
            rule,
        }
    }

    /// Whether a wait of a thread that began then is one of these.
    pub(crate) fn has(&self, state: &State) -> bool {
        self.waits.contains(&(state.thread, state.start_ns))
    }
}

/// The sleep that ended just before a flush, by the same thread, with nothing asked of it in between.
fn sleep_before<'a>(rows: &Rows<'a>, flush: &Flush) -> Option<&'a State> {
    let states = rows.states(flush.thread);
    let before = states.partition_point(|state| state.end_ns <= flush.start_ns);
    let mut before = states[..before].iter().rev();
    let last = before.find(|state| state.kind == StateKind::Blocked)?;
    let call = rows.call(last.call)?;
    let timed = matches!(call.kind, CallKind::Sleep | CallKind::Poll) && last.waker == NONE;
    let ran_ns = rows.on_core_ns(flush.thread, last.end_ns, flush.start_ns);
    let leads = ran_ns <= LEADER_NS && !rows.talked(flush.thread, last.end_ns, flush.start_ns);
    (timed && leads).then_some(last)
}

/// A delay that the settings do not tell: sleeps of one length before a good part of the flushes.
fn inferred(lengths: &[u64], led: usize, usual_siblings: u32) -> Option<CommitDelay> {
    let long = lengths.iter().copied().filter(|ns| *ns >= LEAST_NS);
    let long: Vec<u64> = long.collect();
    let usual_ns = u32::try_from(median(long.clone())?).ok()?;
    let alike = long.iter().filter(|ns| is_alike(**ns, usual_ns)).count();
    let often = long.len() as f64 >= LEAST_SHARE * led as f64;
    let steady = alike as f64 >= ALIKE_SHARE * long.len() as f64;
    (long.len() >= ENOUGH && often && steady).then_some(CommitDelay {
        time_ns: usual_ns,
        // Where all flushes were late, no number of others was too few.
        siblings: if alike * 10 < led * 9 {
            usual_siblings
        } else {
            0
        },
        from_settings: false,
    })
}

fn is_alike(length_ns: u64, usual_ns: u32) -> bool {
    let usual_ns = f64::from(usual_ns);
    (usual_ns / ALIKE_FACTOR..=usual_ns * ALIKE_FACTOR).contains(&(length_ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_of_one_length_before_flushes_are_a_delay() {
        let steady: Vec<u64> = (0..40).map(|at| 20_100_000 + at * 1_000).collect();
        let found = inferred(&steady, 40, 5).expect("all flushes had one");
        assert_eq!((found.time_ns / 1_000, found.siblings), (20_120, 0));
        assert_eq!(inferred(&steady, 100, 5).expect("many had one").siblings, 5);
        assert_eq!(inferred(&steady, 1_000, 5), None, "few had one");
        assert_eq!(inferred(&steady[..10], 10, 5), None);
        let varied: Vec<u64> = (1..41).map(|at| at * 1_000_000).collect();
        assert_eq!(inferred(&varied, 40, 5), None);
        assert_eq!(inferred(&[50_000; 40], 40, 5), None, "a timer's slack");
    }
}
