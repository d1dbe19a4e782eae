//! Classifies threads that no rule knows, by their calls.

use std::collections::BTreeSet;

use tierwise_recording::{Call, CallKind, Thread, ThreadClass};

/// Threads of class `Other`, which were taken for background threads until they are seen to talk.
#[derive(Debug, Default)]
pub(super) struct Presumed {
    threads: BTreeSet<u32>,
}

impl Presumed {
    /// Classifies by the calls of a burst, which are in order of threads: a thread that receives and sends
    /// serves a client; any other that no rule knows works in the background.
    pub(super) fn judge(&mut self, threads: &mut [Thread], calls: &[Call]) {
        for (index, thread) in threads.iter_mut().enumerate() {
            if thread.class == ThreadClass::Other {
                thread.class = ThreadClass::Background;
                self.threads.insert(index as u32);
            }
        }
        for calls in calls.chunk_by(|a, b| a.thread == b.thread) {
            let thread = calls[0].thread;
            if self.threads.contains(&thread) && talks(calls) {
                self.threads.remove(&thread);
                threads[thread as usize].class = ThreadClass::Session;
            }
        }
    }
}

fn talks(calls: &[Call]) -> bool {
    let does = |kind| calls.iter().any(|call| call.kind == kind && !call.failed);
    does(CallKind::Receive) && does(CallKind::Send)
}
