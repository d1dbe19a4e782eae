//! Services of the machine: coroutines that belong to no session.

use tierwise_device::Nanos;
use tierwise_work::TimeCategory;

use crate::kernel::task::{Task, Wait};

/// Interval of periodic write-back (`dirty_writeback_centisecs`).
const WRITE_BACK_INTERVAL_NS: Nanos = 5_000_000_000;

impl Task<'_> {
    /// Measures a steady run: a warm-up, then the span.
    pub(crate) async fn measure(self, warm_up_ns: Nanos, span_ns: Nanos) {
        self.sleep(warm_up_ns, TimeCategory::Sleep).await;
        self.machine().begin_counting();
        self.sleep(span_ns, TimeCategory::Sleep).await;
        self.machine().over = true;
    }

    /// The kernel's periodic write-back; also gives up waits for signals that do not come.
    pub(crate) async fn write_back_periodically(self) {
        loop {
            self.machine().give_up_signals();
            self.machine().start_write_back();
            self.sleep(WRITE_BACK_INTERVAL_NS, TimeCategory::Sleep)
                .await;
        }
    }

    /// Other programs want a slice of a core at regular intervals, and catch up on missed ones.
    pub(crate) async fn load_core(self, first_at: Nanos, period_ns: Nanos) {
        let mut due = first_at;
        loop {
            self.sleep_until(due, TimeCategory::Sleep).await;
            self.use_slice().await;
            due += period_ns;
        }
    }

    /// Sleeps until a time, if it is not past.
    pub(crate) fn sleep_until(&self, at: Nanos, activity: TimeCategory) -> Wait {
        let now = self.machine().clock.now();
        self.sleep(at.saturating_sub(now), activity)
    }
}
