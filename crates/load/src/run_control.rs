//! State shared between a caller and the work that it started, and when a run ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine_client::StatementFailure;

/// A request to stop, which any thread can make, and the progress of the work. Copies are the same control.
#[derive(Clone, Debug, Default)]
pub struct RunControl {
    stopped: Arc<AtomicBool>,
    /// Stopping the control that this one was derived from stops this one too.
    parent: Option<Arc<AtomicBool>>,
    done: Arc<AtomicU64>,
}

impl RunControl {
    /// Ask all holders of a copy to stop.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Rows appended or transactions ended so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        set(&self.stopped) || self.parent.as_ref().is_some_and(set)
    }

    pub(crate) fn add_done(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// A control that this one stops, but that does not stop this one; progress counts for both.
    pub(crate) fn child(&self) -> Self {
        Self {
            stopped: Arc::default(),
            parent: Some(Arc::clone(&self.stopped)),
            done: Arc::clone(&self.done),
        }
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum RunLimit {
    /// After this number of transactions, shared out equally among the clients.
    Transactions(u64),
    /// When this time is over; transactions under way are finished.
    Time(Duration),
}

/// The task of a pool's clients.
#[derive(Clone, Copy, Debug)]
pub struct ClientTask<'a> {
    /// When it is done.
    pub limit: RunLimit,
    /// Run this transaction and no other; otherwise the mix. Sequences of a client's own then begin anew,
    /// unless they go on after the greatest number in use.
    pub transaction: Option<&'a str>,
    /// After this time the engine stops the statements under way, and no other is begun.
    pub cap: Option<Duration>,
}

impl ClientTask<'_> {
    /// The mix, up to `limit`.
    pub fn mix(limit: RunLimit) -> Self {
        Self {
            limit,
            transaction: None,
            cap: None,
        }
    }
}

// The time limit of a run, and when an engine must be given again.

/// An engine counts its limit from the start of each statement, so its last limit is too long by the time
/// since. It is given again when that is more than this share of the cap.
const LATE_SHARE: u32 = 100;
/// Too short a time to be worth a round trip.
const LATE_MIN: Duration = Duration::from_millis(10);

/// A deadline, and when one client's engine was last given its limit.
#[derive(Debug)]
pub(crate) struct StatementDeadline {
    deadline: Instant,
    late: Duration,
    given_at: Option<Instant>,
}

impl StatementDeadline {
    pub fn new(cap: Duration, now: Instant) -> Self {
        Self {
            deadline: now + cap,
            late: (cap / LATE_SHARE).max(LATE_MIN),
            given_at: None,
        }
    }

    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// The limit that the engine must be given before the next statement, if any.
    ///
    /// # Errors
    /// If there is no time left for a statement.
    pub fn due(&mut self, now: Instant) -> Result<Option<Duration>, StatementFailure> {
        if self.is_over(now) {
            return Err(StatementFailure::capped("the time is over"));
        }
        if self.given_at.is_some_and(|at| now < at + self.late) {
            return Ok(None);
        }
        self.given_at = Some(now);
        Ok(Some(self.deadline - now))
    }

    /// Forget the limit that the engine was given: a rollback undoes it in some engines.
    pub fn forget(&mut self) {
        self.given_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_told_seldom_and_never_much_too_late() {
        let start = Instant::now();
        let mut cap = StatementDeadline::new(Duration::from_secs(10), start);
        let mut given = 0;
        for ms in 0..10_000 {
            let now = start + Duration::from_millis(ms);
            if let Some(limit) = cap.due(now).unwrap() {
                given += 1;
                assert_eq!(now + limit, start + Duration::from_secs(10));
            }
        }
        assert!((90..=101).contains(&given), "{given} times");
        assert!(cap.due(start + Duration::from_secs(10)).unwrap_err().capped);
    }

    #[test]
    fn a_rollback_makes_it_tell_again() {
        let start = Instant::now();
        let mut cap = StatementDeadline::new(Duration::from_secs(1), start);
        assert!(cap.due(start).unwrap().is_some());
        assert!(cap.due(start).unwrap().is_none());
        cap.forget();
        assert!(cap.due(start).unwrap().is_some());
    }
}
