//! Statistics of recorded values.

/// Least number of values for a mean.
pub(crate) const ENOUGH: u32 = 20;

/// A running mean.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunningMean {
    sum: f64,
    pub(crate) count: u32,
}

impl RunningMean {
    /// Adds a value.
    pub(crate) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// The mean; none if there are too few values.
    pub(crate) fn mean(self) -> Option<f64> {
        (self.count >= ENOUGH).then(|| self.sum / f64::from(self.count))
    }
}

/// The median, the upper one for an even number of values; none if there are no values.
pub(crate) fn median(mut times_ns: Vec<u64>) -> Option<u64> {
    times_ns.sort_unstable();
    times_ns.get(times_ns.len() / 2).copied()
}
