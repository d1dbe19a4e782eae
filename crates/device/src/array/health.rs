//! The failed member, and the progress of its replacement.

/// Which member does not hold its data.
#[derive(Clone, Debug)]
pub(super) struct Health {
    pub(super) failed: Option<usize>,
    /// Whether there is a replacement in its place.
    replaced: bool,
    /// Up to where the replacement holds data, in sectors.
    pub(super) rebuilt: u64,
}

impl Health {
    /// The first member failed, if one has; the array's times do not depend on which one.
    pub(super) fn new(degraded: bool, replaced: bool) -> Self {
        Self {
            failed: degraded.then_some(0),
            replaced,
            rebuilt: 0,
        }
    }

    /// As [`Health::new`] for any member, without a replacement.
    #[cfg(test)]
    pub(super) fn of(failed: Option<usize>) -> Self {
        Self {
            failed,
            ..Self::new(false, false)
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.failed.is_none()
    }

    /// The member that lacks data somewhere below `end`, a sector of members.
    pub(super) fn missing_below(&self, end: u64) -> Option<usize> {
        self.failed.filter(|_| end > self.rebuilt)
    }

    /// The member that takes no writes from `start` on.
    pub(super) fn missing_from(&self, start: u64) -> Option<usize> {
        self.failed.filter(|_| start >= self.rebuilt)
    }

    /// The place where there is no member at all.
    pub(super) fn absent(&self) -> Option<usize> {
        self.failed.filter(|_| !self.replaced)
    }
}
