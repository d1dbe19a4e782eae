//! Threads of client programs: each serves its sessions one after the other, in the order in which they ask.
//!
//! A program of many connections waits for all of them in one thread (`epoll_wait`), then does what each answer
//! asks for in turn; while it serves one, the others' answers lie in their sockets. Between two that wait it
//! keeps its core, as any thread does that has more to do.

use std::collections::{BTreeMap, VecDeque};

use tierwise_device::Nanos;

use crate::kernel::session::SessionState;
use crate::program::prepared::Program;

/// One thread of a client program.
#[derive(Debug, Default)]
pub(crate) struct ClientThread {
    /// Whom it serves.
    pub(crate) serves: Option<u32>,
    pub(crate) waiting: VecDeque<u32>,
    /// Since when it has been off its core.
    pub(crate) off_since: Nanos,
    /// How cold it was when it last left its core; see [`tierwise_work::CpuCost`].
    pub(crate) coldness: f64,
}

/// The threads of all sessions' clients; tells each session its own. Further sets of sessions are further
/// connections of the same threads, but where each session has a thread of its own.
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
