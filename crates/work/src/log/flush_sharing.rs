//! How commits share flushes of the log: by the rules of the engine, or by which threads wake which after a
//! flush.

use std::collections::BTreeMap;

use tierwise_recording::{StateKind, ThreadClass};

use crate::Grouping;
use crate::constants::{OVERLAPPING_MOST_SHARE, TOO_EARLY_NS, WAITING_AGAIN_MOST_SHARE};
use crate::engines::FlushSharing;
use crate::index::rows::Rows;
use crate::log::flushes::{Flush, LogFlushes};

/// Least number of threads that a flush woke without covering them, to infer the rule.
const ENOUGH: usize = 20;

impl LogFlushes {
    /// How the engine shares flushes.
    pub(crate) fn grouping(&self, rows: &Rows<'_>) -> Grouping {
        let overlap = overlapping(&self.all) > OVERLAPPING_MOST_SHARE.get();
        match rows.engine.flush_sharing {
            FlushSharing::Always(grouping) => grouping,
            _ if overlap => Grouping::Alone,
            FlushSharing::UnlessOverlapping(grouping) => grouping,
            FlushSharing::Inferred => self.inferred(rows),
        }
    }

    /// Infers the rule from threads that a flush woke without covering them: either all of them are woken,
    /// and all but one wait again, or only the next leader is woken.
    fn inferred(&self, rows: &Rows<'_>) -> Grouping {
        let sessions = rows.threads(ThreadClass::Session);
        let led: Vec<bool> = sessions
            .flat_map(|thread| self.led_once_woken_early(rows, thread))
            .collect();
        let again = led.iter().filter(|led| !**led).count();
        if led.len() >= ENOUGH && again as f64 <= WAITING_AGAIN_MOST_SHARE.get() * led.len() as f64
        {
            Grouping::Relay
        } else {
            Grouping::LeaderFollower
        }
    }

    /// Each time a flush woke a thread without covering it: whether the thread then flushed the log itself
    /// rather than waiting again.
    fn led_once_woken_early(&self, rows: &Rows<'_>, thread: u32) -> Vec<bool> {
        let own = self.all.iter().filter(|flush| flush.thread == thread);
        let mut steps: Vec<LogStep> = own
            .map(|flush| LogStep {
                start_ns: flush.start_ns,
                end_ns: flush.end_ns,
                own: true,
            })
            .collect();
        let waits = rows.states(thread).iter().filter(|state| {
            let flush = self.that_woke(state.waker, state.start_ns, state.end_ns);
            state.kind == StateKind::Blocked && flush.is_some()
        });
        steps.extend(waits.map(|wait| LogStep {
            start_ns: wait.start_ns,
            end_ns: wait.end_ns,
            own: false,
        }));
        steps.sort_by_key(|step| step.start_ns);
        let early = steps.windows(2).filter(|pair| {
            let (woken_ns, next_ns) = (pair[0].end_ns, pair[1].start_ns);
            !pair[0].own
                && rows.on_core_ns(thread, woken_ns, next_ns) < TOO_EARLY_NS.get()
                && !rows.talked(thread, woken_ns, next_ns)
        });
        early.map(|pair| pair[1].own).collect()
    }
}

/// A thread's own flush of the log, or its wait for another's.
struct LogStep {
    start_ns: u64,
    end_ns: u64,
    own: bool,
}

/// Share of flushes of one file that began before another had ended.
fn overlapping(flushes: &[Flush]) -> f64 {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    let mut count = 0_u32;
    for flush in flushes {
        let end = ends.entry(flush.file).or_default();
        count += u32::from(flush.start_ns < *end);
        *end = (*end).max(flush.end_ns);
    }
    f64::from(count) / flushes.len().max(1) as f64
}
