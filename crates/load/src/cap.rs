//! The time limit of a run, and when an engine must be told again.

use std::time::{Duration, Instant};

use crate::client::Failure;

/// An engine counts its limit from the start of each statement, so its last limit is too long by the time
/// since. It is told again when that is more than this share of the cap.
const LATE_SHARE: u32 = 100;
/// Too short a time to be worth a round trip.
const LATE_MIN: Duration = Duration::from_millis(10);

/// A deadline, and the limit that the engine of one client was last told.
#[derive(Debug)]
pub(crate) struct Cap {
    deadline: Instant,
    late: Duration,
    told: Option<Instant>,
}

impl Cap {
    pub fn new(cap: Duration, now: Instant) -> Self {
        Self {
            deadline: now + cap,
            late: (cap / LATE_SHARE).max(LATE_MIN),
            told: None,
        }
    }

    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// The limit that the engine must be told before the next statement, if any.
    ///
    /// # Errors
    /// If there is no time left for a statement.
    pub fn due(&mut self, now: Instant) -> Result<Option<Duration>, Failure> {
        if self.is_over(now) {
            return Err(Failure::capped("the time is over"));
        }
        if self.told.is_some_and(|told| now < told + self.late) {
            return Ok(None);
        }
        self.told = Some(now);
        Ok(Some(self.deadline - now))
    }

    /// Forget the limit that the engine was told: a rollback undoes it in some engines.
    pub fn forget(&mut self) {
        self.told = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_told_seldom_and_never_much_too_late() {
        let start = Instant::now();
        let mut cap = Cap::new(Duration::from_secs(10), start);
        let mut told = 0;
        for ms in 0..10_000 {
            let now = start + Duration::from_millis(ms);
            if let Some(limit) = cap.due(now).unwrap() {
                told += 1;
                assert_eq!(now + limit, start + Duration::from_secs(10));
            }
        }
        assert!((90..=101).contains(&told), "{told} times");
        assert!(cap.due(start + Duration::from_secs(10)).unwrap_err().capped);
    }

    #[test]
    fn a_rollback_makes_it_tell_again() {
        let start = Instant::now();
        let mut cap = Cap::new(Duration::from_secs(1), start);
        assert!(cap.due(start).unwrap().is_some());
        assert!(cap.due(start).unwrap().is_none());
        cap.forget();
        assert!(cap.due(start).unwrap().is_some());
    }
}
