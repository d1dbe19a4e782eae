//! Threads of client programs: each serves its sessions one at a time, in the order of their requests.
//!
//! A program with many connections waits for all of them in one thread (`epoll_wait`) and handles the replies in
//! turn; other replies stay in their sockets meanwhile. The thread keeps its core as long as a session waits for it.

use std::collections::{BTreeMap, VecDeque};

use tierwise_device::Nanos;

use crate::kernel::session::SessionState;
use crate::program::prepared::Program;

/// One thread of a client program.
#[derive(Debug, Default)]
pub(crate) struct ClientThread {
    /// The session it serves.
    pub(crate) serves: Option<u32>,
    pub(crate) waiting: VecDeque<u32>,
    /// When it last left a core.
    pub(crate) off_since: Nanos,
    /// How cold its caches were when it last left a core; see [`tierwise_work::WarmupCost`].
    pub(crate) coldness: f64,
}

/// The client threads of all sessions; sets each session's own. Further copies of the sessions are further
/// connections of the same threads, unless each session has a thread of its own.
pub(crate) fn threads(program: &Program, sessions: &mut [SessionState]) -> Vec<ClientThread> {
    let mut served: BTreeMap<u32, u32> = BTreeMap::new();
    for client in program.sessions.iter().filter_map(|routine| routine.thread) {
        *served.entry(client).or_default() += 1;
    }
    let mut numbers: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for session in sessions {
        let Some(client) = program.sessions[session.program_index as usize].thread else {
            continue;
        };
        let set = if served[&client] > 1 { 0 } else { session.set };
        let next = numbers.len() as u32;
        session.client = *numbers.entry((set, client)).or_insert(next);
    }
    numbers.iter().map(|_| ClientThread::default()).collect()
}
