//! Time since the work began: recorded bursts back to back, without the gaps between them.

use tierwise_recording::Burst;

/// Converts instants of the recording into time since the work began.
#[derive(Clone, Debug)]
pub(crate) struct WorkClock {
    /// Begin and end of each burst, and the time of the work at its begin.
    bursts: Vec<(u64, u64, u64)>,
}

impl WorkClock {
    pub(crate) fn new(bursts: &[Burst]) -> Self {
        let mut passed_ns = 0;
        let place = |burst: &Burst| {
            let place = (burst.start_ns, burst.end_ns, passed_ns);
            passed_ns += burst.end_ns - burst.start_ns;
            place
        };
        Self {
            bursts: bursts.iter().map(place).collect(),
        }
    }

    /// Time since the work began.
    pub(crate) fn of(&self, time_ns: u64) -> u64 {
        let after = self
            .bursts
            .partition_point(|&(start_ns, ..)| start_ns <= time_ns);
        let Some(&(start_ns, end_ns, passed_ns)) = self.bursts[..after].last() else {
            return 0;
        };
        passed_ns + time_ns.min(end_ns) - start_ns
    }
}
