//! State shared between a caller and the work that it started, and when a run ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A request to stop, which any thread can make, and the progress of the work. Copies are the same control.
#[derive(Clone, Debug, Default)]
pub struct Control {
    stopped: Arc<AtomicBool>,
    /// Stopping the control that this one was derived from stops this one too.
    parent: Option<Arc<AtomicBool>>,
    done: Arc<AtomicU64>,
}

impl Control {
    /// Ask all holders of a copy to stop.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Rows appended or transactions ended so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        set(&self.stopped) || self.parent.as_ref().is_some_and(set)
    }

    pub(crate) fn add_done(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// A control that this one stops, but that does not stop this one; progress counts for both.
    pub(crate) fn child(&self) -> Self {
        Self {
            stopped: Arc::default(),
            parent: Some(Arc::clone(&self.stopped)),
            done: Arc::clone(&self.done),
        }
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After this number of transactions, shared out equally among the clients.
    Transactions(u64),
    /// When this time is over; transactions under way are finished.
    Time(Duration),
}

/// The task of a pool's clients.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// When it is done.
    pub limit: Limit,
    /// Run this transaction and no other; otherwise the mix. Sequences of a client's own then begin anew,
    /// unless they go on after the greatest number in use.
    pub transaction: Option<&'a str>,
    /// After this time the engine stops the statements under way, and no other is begun.
    pub cap: Option<Duration>,
}

impl Task<'_> {
    /// The mix, up to `limit`.
    pub fn mix(limit: Limit) -> Self {
        Self {
            limit,
            transaction: None,
            cap: None,
        }
    }
}
