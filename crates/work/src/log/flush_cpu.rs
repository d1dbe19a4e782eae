//! Processor time of those who flush the log: until the last wait for its device, and after it.
//!
//! The part after the wait runs on a core that was idle for as long as the device took, so it costs less on a faster
//! device. The part before does not.

use crate::WarmupCost;

/// Time on a core in calls that flush the log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlushCpu {
    flushes: u32,
    /// What recording took on top.
    traced_ns: f64,
    before_ns: f64,
    after_ns: f64,
    /// Sum of the waits of flushes, and their number.
    waited_ns: f64,
    waits: u32,
    /// Of the flush under way: after its last wait so far, and all its waits: a replay waits once.
    last: Option<(f64, u64)>,
}

impl FlushCpu {
    /// A call of a commit: whether it flushed the log.
    pub(crate) fn count(&mut self, flush: bool) {
        self.flushes += u32::from(flush);
    }

    /// A CPU burst within a flush, after a wait.
    pub(crate) fn ran(&mut self, time_ns: f64, after_wait_ns: u64) {
        if after_wait_ns > 0 {
            let earlier = self.last.take();
            self.before_ns += earlier.map_or(0.0, warm_ns);
            let waited_ns = earlier.map_or(0, |(_, waited_ns)| waited_ns);
            self.last = Some((0.0, waited_ns + after_wait_ns));
        }
        match &mut self.last {
            Some(last) => last.0 += time_ns,
            None => self.before_ns += time_ns,
        }
    }

    /// Recording took this much of a CPU burst.
    pub(crate) fn was_recorded(&mut self, traced_ns: f64) {
        self.traced_ns += traced_ns;
    }

    /// What it took of one flush on the mean.
    pub(crate) fn traced_ns(&self) -> u32 {
        (self.traced_ns / f64::from(self.flushes.max(1))) as u32
    }

    /// The flush is done.
    pub(crate) fn settle(&mut self) {
        if let Some((after_ns, wait_ns)) = self.last.take() {
            self.after_ns += after_ns;
            self.waited_ns += wait_ns as f64;
            self.waits += 1;
        }
    }

    /// Takes in those of another turn.
    pub(crate) fn add(&mut self, mut other: Self) {
        other.settle();
        self.flushes += other.flushes;
        self.traced_ns += other.traced_ns;
        self.before_ns += other.before_ns;
        self.after_ns += other.after_ns;
        self.waited_ns += other.waited_ns;
        self.waits += other.waits;
    }

    /// Of one flush on the mean, before its wait and after it.
    pub(crate) fn of_one(&self) -> (u32, u32) {
        let each = |ns: f64| (ns / f64::from(self.flushes.max(1))) as u32;
        (each(self.before_ns), each(self.after_ns))
    }

    /// The mean wait.
    pub(crate) fn wait_ns(&self) -> u32 {
        (self.waited_ns / f64::from(self.waits.max(1))) as u32
    }
}

/// What came between two waits of a flush, had its thread been warm: the waits may be shorter elsewhere.
fn warm_ns((took_ns, wait_ns): (f64, u64)) -> f64 {
    let cost = WarmupCost::default();
    cost.warm(took_ns, cost.after_wait(false, 0.0, wait_ns)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_last_wait_is_apart() {
        let mut cpu = FlushCpu::default();
        for _ in 0..2 {
            cpu.ran(10.0, 0);
            cpu.ran(3.0, 500);
            cpu.ran(4.0, 8000);
            cpu.ran(1.0, 0);
            cpu.settle();
            cpu.count(true);
        }
        let mut all = FlushCpu::default();
        all.add(cpu);
        let between = warm_ns((3.0, 500));
        assert!(between > 2.5 && between < 3.0);
        assert_eq!(all.of_one(), (12, 5));
        assert_eq!(all.wait_ns(), 8500);
    }
}
