//! Time that never runs backwards.

use crate::Nanos;

/// The latest time that a device was called with.
#[derive(Debug, Default)]
pub(crate) struct Forward(Nanos);

impl Forward {
    /// The time of a call at `now`: `now` itself, or the latest time before it if that is later.
    #[inline]
    pub(crate) fn to(&mut self, now: Nanos) -> Nanos {
        self.0 = self.0.max(now);
        self.0
    }
}
