//! Clients on the same machine: threads that wake the target's, and are neither its own nor the kernel's.

use std::collections::{HashMap, HashSet};

use super::decode::Decoder;
use super::processes;
use super::raw_burst::RawBurst;
use crate::EventKind;

/// Whoever wakes once may be anybody: a parent, a timer's owner.
const LEAST_WAKES: u32 = 2;

/// Ids of the clients that a burst shows, sorted.
pub fn clients_in(burst: &RawBurst, decoder: &Decoder) -> Vec<i32> {
    let own: HashSet<i32> = burst.threads.iter().map(|thread| thread.tid).collect();
    let mut wakes: HashMap<i32, u32> = HashMap::new();
    burst.decode(decoder, |event| {
        if let EventKind::Waking {
            woken,
            interrupt: false,
            ..
        } = event.kind
        {
            let foreign = event.tid != 0 && !own.contains(&event.tid);
            if foreign && own.contains(&woken) {
                *wakes.entry(event.tid).or_default() += 1;
            }
        }
    });
    let often = wakes.into_iter().filter(|&(_, count)| count >= LEAST_WAKES);
    let mut clients: Vec<i32> = often
        .map(|(tid, _)| tid)
        .filter(|&tid| !processes::is_kernel_thread(tid))
        .collect();
    clients.sort_unstable();
    clients
}
