//! Statistics of what was seen in a recording.

/// Values from which on a mean is believed.
pub(crate) const ENOUGH: u32 = 20;

/// A mean while values are added.
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

    /// The mean; none of too few values.
    pub(crate) fn mean(self) -> Option<f64> {
        (self.count >= ENOUGH).then(|| self.sum / f64::from(self.count))
    }
}

/// The median, of an even number the upper one of the two in the middle; none of nothing.
pub(crate) fn median(mut times_ns: Vec<u64>) -> Option<u64> {
    times_ns.sort_unstable();
    times_ns.get(times_ns.len() / 2).copied()
}
