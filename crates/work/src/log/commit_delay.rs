//! The wait of a flush's leader for more commits (PostgreSQL's `commit_delay`): known from the settings, else inferred
//! from sleeps of one length before flushes.
//!
//! Source: PostgreSQL, `XLogFlush` (xlog.c): the leader sleeps with the log's lock held, if `MinimumActiveBackends`
//! finds enough others, and then flushes all that is inserted by then.

use std::collections::BTreeSet;

use tierwise_recording::{CallKind, NONE, State, StateKind, ThreadClass};

use crate::CommitDelay;
use crate::index::rows::Rows;
use crate::log::flushes::Flush;
use crate::statistics::median;

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
        let sleeps: Vec<&State> = led
            .iter()
            .filter_map(|flush| sleep_before(rows, flush))
            .collect();
        let length = |state: &&State| state.end_ns - state.start_ns;
        let rule = match said {
            Some(said) => {
                let kept = sleeps
                    .iter()
                    .filter(|state| length(state) >= u64::from(said.time_ns));
                let seen = median(kept.map(length).collect());
                let time_ns = seen.map_or(said.time_ns, |ns| {
                    ns.min(u64::from(said.time_ns) * 2) as u32
                });
                Some(CommitDelay { time_ns, ..said })
            }
            None => {
                let lengths: Vec<u64> = sleeps.iter().map(length).collect();
                inferred(&lengths, led.len(), rows.engine.usual_siblings())
            }
        };
        let alike =
            |state: &&&State| rule.is_some_and(|rule| is_alike(length(state), rule.time_ns));
        let waits = sleeps.iter().filter(alike);
        Self {
            waits: waits.map(|state| (state.thread, state.start_ns)).collect(),
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
    let asleep = |state: &&State| state.kind == StateKind::Blocked && is_sleep(rows, state);
    let blocked = states[..before]
        .iter()
        .rev()
        .find(|state| state.kind == StateKind::Blocked);
    blocked.filter(asleep).filter(|state| {
        let ran_ns = rows.on_core_ns(flush.thread, state.end_ns, flush.start_ns);
        ran_ns <= LEADER_NS && !rows.talked(flush.thread, state.end_ns, flush.start_ns)
    })
}

fn is_sleep(rows: &Rows<'_>, state: &State) -> bool {
    let call = rows.call(state.call);
    let timed = call.is_some_and(|call| matches!(call.kind, CallKind::Sleep | CallKind::Poll));
    timed && state.waker == NONE
}

/// A delay that the settings do not tell: sleeps of one length before a good part of the flushes.
fn inferred(lengths: &[u64], led: usize, usual_siblings: u32) -> Option<CommitDelay> {
    let long: Vec<u64> = lengths
        .iter()
        .copied()
        .filter(|ns| *ns >= LEAST_NS)
        .collect();
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
