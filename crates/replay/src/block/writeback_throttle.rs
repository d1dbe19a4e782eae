//! Write-back throttling: how many writes that nobody waits for at once may be under way on a partition.
//!
//! Source: Linux block/blk-wbt.c, block/blk-rq-qos.c. The depth is 16 at first. In windows of 100 ms it is halved
//! while the fastest read takes longer than a target, doubled while there are only writes, up to three quarters of
//! the queue, and returns to 16 when idle. Half of it is for writes of syncs, a quarter for the flusher's, or for
//! both within 100 ms of a read. Emulated disks are loop devices: their target is that of a disk without moving
//! parts. Not modelled: direct writes count as reads; blocked writers may use all of the depth.

use tierwise_device::Nanos;
use tierwise_work::Mechanism;

use crate::program::prepared::Program;

/// Length of a window.
const WINDOW_NS: Nanos = 100_000_000;
/// Initial and largest depth: three quarters of a queue of 128 (`nr_requests`).
const DEPTH: (u32, u32) = (16, 96);
/// Least writes in a window for its reads to count.
const ENOUGH_WRITES: u32 = 3;
/// Idle windows after which the depth returns by a step.
const SILENT_WINDOWS: u32 = 5;
/// Target latency of reads (`wbt_lat_usec`).
const TARGET_NS: Nanos = 2_000_000;

/// The throttle of one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct WritebackThrottle {
    /// Number of halvings; negative for doublings.
    step: i32,
    /// End of the open window, if there is one.
    window_ends: Option<Nanos>,
    least_read_ns: Option<Nanos>,
    writes: u32,
    silent: u32,
    under_way: u32,
    /// Send times of reads under way.
    reads_sent: Vec<Nanos>,
    read_at: Option<Nanos>,
    /// Whether any number may be under way.
    unlimited: bool,
}

impl WritebackThrottle {
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            unlimited: program.is_off(Mechanism::WritebackThrottle),
            ..Self::default()
        }
    }

    /// Limit of writes under way; `gently`: for the flusher.
    pub(crate) fn limit(&mut self, now: Nanos, gently: bool) -> u32 {
        if self.unlimited {
            return u32::MAX;
        }
        self.close_windows(now);
        let depth = self.depth();
        let beside_reads = self.read_at.is_some_and(|at| now < at + WINDOW_NS);
        match (depth, gently || beside_reads) {
            (..=2, true) => 1,
            (..=2, false) => depth,
            (_, true) => depth.div_ceil(4),
            (_, false) => depth.div_ceil(2),
        }
    }

    /// Whether another write may be sent.
    pub(crate) fn has_room(&mut self, now: Nanos, gently: bool) -> bool {
        self.under_way < self.limit(now, gently)
    }

    /// Notes a write.
    pub(crate) fn write_sent(&mut self, now: Nanos) {
        self.close_windows(now);
        self.under_way += 1;
        self.window_ends.get_or_insert(now + WINDOW_NS);
    }

    /// Notes a completed write.
    pub(crate) fn write_done(&mut self, now: Nanos) {
        self.close_windows(now);
        self.under_way -= 1;
        self.writes += 1;
    }

    /// Notes a read.
    pub(crate) fn read_sent(&mut self, now: Nanos) {
        self.close_windows(now);
        self.reads_sent.push(now);
        self.read_at = Some(now);
    }

    /// Notes a completed read.
    pub(crate) fn read_done(&mut self, now: Nanos, sent_at: Nanos) {
        self.close_windows(now);
        if let Some(at) = self.reads_sent.iter().position(|sent| *sent == sent_at) {
            self.reads_sent.remove(at);
        }
        let took_ns = now - sent_at;
        self.least_read_ns = Some(self.least_read_ns.map_or(took_ns, |ns| ns.min(took_ns)));
        self.read_at = Some(now);
    }

    fn depth(&self) -> u32 {
        let (first, most) = DEPTH;
        match self.step {
            0.. => 1 + ((first - 1) >> self.step),
            step => (1 + ((first - 1) << -step)).min(most),
        }
    }

    /// Closes windows that have ended.
    fn close_windows(&mut self, now: Nanos) {
        while let Some(ends) = self.window_ends.filter(|ends| *ends <= now) {
            self.adjust_depth(ends);
            self.least_read_ns = None;
            self.writes = 0;
            let goes_on = self.step != 0 || self.under_way > 0;
            self.window_ends = goes_on.then(|| ends + self.window_ns());
        }
    }

    /// Windows are shorter at a small depth.
    fn window_ns(&self) -> Nanos {
        let step = f64::from(self.step.max(0));
        (WINDOW_NS as f64 / (step + 1.0).sqrt()) as Nanos
    }

    fn adjust_depth(&mut self, now: Nanos) {
        let pending_ns = self
            .reads_sent
            .first()
            .map_or(0, |sent_at| now.saturating_sub(*sent_at));
        let stuck =
            pending_ns > WINDOW_NS || pending_ns > TARGET_NS && self.least_read_ns.is_none();
        let told = self.least_read_ns.filter(|_| self.writes >= ENOUGH_WRITES);
        let slow = stuck || told.is_some_and(|ns| ns > TARGET_NS);
        let busy = told.is_some() || self.writes > 0 || self.under_way > 0;
        self.silent += 1;
        let change = if slow && self.step < 0 {
            -self.step
        } else if slow {
            i32::from(self.depth() > 1)
        } else if busy {
            -i32::from(self.depth() < DEPTH.1)
        } else if self.silent >= SILENT_WINDOWS {
            -self.step.signum()
        } else {
            return;
        };
        self.step += change;
        self.silent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Writes of 5 ms, one after the other, and reads beside them if they take any time.
    fn busy(throttle: &mut WritebackThrottle, from: Nanos, until: Nanos, read_ns: Nanos) {
        for now in (from..until).step_by(5 * MS as usize) {
            throttle.write_sent(now);
            if read_ns > 0 {
                throttle.read_sent(now);
                throttle.read_done(now + read_ns, now);
            }
            throttle.write_done(now + 4 * MS);
        }
    }

    #[test]
    fn slow_reads_make_room_and_writes_alone_take_it() {
        let mut throttle = WritebackThrottle::default();
        assert_eq!((throttle.limit(0, false), throttle.limit(0, true)), (8, 4));
        busy(&mut throttle, 0, 1000 * MS, 0);
        assert_eq!(throttle.limit(1000 * MS, false), 48);
        busy(&mut throttle, 1000 * MS, 3000 * MS, 3 * MS);
        assert_eq!(throttle.limit(3000 * MS, false), 1);
        assert_eq!(
            throttle.limit(30_000 * MS, false),
            8,
            "after a while of nothing"
        );
    }

    #[test]
    fn quick_reads_take_no_room_but_what_is_left_is_for_them() {
        let mut throttle = WritebackThrottle::default();
        busy(&mut throttle, 0, 1000 * MS, MS);
        assert_eq!(throttle.limit(1000 * MS, false), 24);
        assert_eq!(throttle.limit(1200 * MS, false), 48);
    }
}
