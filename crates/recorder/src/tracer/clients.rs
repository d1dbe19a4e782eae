//! Clients on the same machine: threads that wake the target's, and belong neither to it nor to the kernel.

use std::collections::{HashMap, HashSet};

use super::decode::Decoder;
use super::raw_burst::RawBurst;
use crate::EventKind;
use crate::host::processes;

/// A thread that wakes once may be no client: a parent, a timer's owner.
const LEAST_WAKES: u32 = 2;

/// A thread that wakes this many times less than the busiest was interrupted, or has no part in the work.
const BUSIEST_OVER_LEAST: u32 = 20;

/// Wakings between the target and one other thread.
#[derive(Default)]
struct Talk {
    asked: u32,
    answered: u32,
}

/// Ids of the clients that a burst shows, sorted: threads that wake the target's threads and are woken by
/// them.
///
/// Both, since an interrupt may use any thread's time to wake a session whose request is done.
pub fn clients_in(burst: &RawBurst, decoder: &Decoder) -> Vec<i32> {
    let own: HashSet<i32> = burst.targets().into_iter().collect();
    let mut talks: HashMap<i32, Talk> = HashMap::new();
    burst.decode(decoder, |event| {
        if let EventKind::Waking {
            woken,
            interrupt: false,
            ..
        } = event.kind
        {
            match (own.contains(&event.tid), own.contains(&woken)) {
                (false, true) => talks.entry(event.tid).or_default().asked += 1,
                (true, false) => talks.entry(woken).or_default().answered += 1,
                _ => {}
            }
        }
    });
    let most = talks.values().map(|talk| talk.asked).max().unwrap_or(0);
    let least = LEAST_WAKES.max(most / BUSIEST_OVER_LEAST);
    talks.retain(|&tid, talk| {
        let talks = talk.asked >= least && talk.answered > 0;
        tid != 0 && talks && !processes::is_kernel_thread(tid)
    });
    let mut clients: Vec<i32> = talks.into_keys().collect();
    clients.sort_unstable();
    clients
}
