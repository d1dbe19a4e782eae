//! The mean of what was seen.

/// Decisions from which on what they show is believed.
pub(crate) const ENOUGH: u32 = 20;

/// Sum and number of what was seen.
#[derive(Clone, Copy, Default)]
pub(crate) struct Share {
    sum: f64,
    pub(crate) count: u32,
}

impl Share {
    /// Something more was seen.
    pub(crate) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// The mean, if it is to be believed.
    pub(crate) fn mean(self) -> Option<f64> {
        (self.count >= ENOUGH).then(|| self.sum / f64::from(self.count))
    }
}
