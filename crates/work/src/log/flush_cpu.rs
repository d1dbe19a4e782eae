//! Processor time of the threads that flush the log: until the last wait for its device, and after it.
//!
//! The part after the wait runs on a core that was idle for as long as the device took, so it costs less on a faster
//! device. The part before does not.

/// Time on a core in calls that flush the log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlushCpu {
    flushes: u32,
    before_ns: f64,
    after_ns: f64,
    /// Of the flush under way: time after its latest wait.
    last: Option<f64>,
}

impl FlushCpu {
    /// A call of a commit: whether it flushed the log.
    pub(crate) fn count(&mut self, flush: bool) {
        self.flushes += u32::from(flush);
    }

    /// A stretch on a core in a flush, after a wait or not.
    pub(crate) fn ran(&mut self, time_ns: f64, waited: bool) {
        if waited {
            self.before_ns += self.last.replace(0.0).unwrap_or(0.0);
        }
        match &mut self.last {
            Some(last) => *last += time_ns,
            None => self.before_ns += time_ns,
        }
    }

    /// The flush has ended.
    pub(crate) fn settle(&mut self) {
        self.after_ns += self.last.take().unwrap_or(0.0);
    }

    /// Merges the flushes of another turn.
    pub(crate) fn add(&mut self, mut other: Self) {
        other.settle();
        self.flushes += other.flushes;
        self.before_ns += other.before_ns;
        self.after_ns += other.after_ns;
    }

    /// Mean of one flush, before its wait and after it.
    pub(crate) fn of_one(&self) -> (u32, u32) {
        let each = |ns: f64| (ns / f64::from(self.flushes.max(1))) as u32;
        (each(self.before_ns), each(self.after_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_last_wait_is_apart() {
        let mut cpu = FlushCpu::default();
        for _ in 0..2 {
            cpu.ran(10.0, false);
            cpu.ran(3.0, true);
            cpu.ran(4.0, true);
            cpu.ran(1.0, false);
            cpu.settle();
            cpu.count(true);
        }
        let mut all = FlushCpu::default();
        all.add(cpu);
        assert_eq!(all.of_one(), (13, 5));
    }
}
