//! Threads of client programs: each serves its sessions one after the other, in the order in which they ask.
//!
//! A program of many connections waits for all of them in one thread (`epoll_wait`), then does what each answer
//! asks for in turn; while it serves one, the others' answers lie in their sockets. Between two that wait it
//! keeps its core, as any thread does that has more to do.

use std::collections::{BTreeMap, VecDeque};

use tierwise_device::Nanos;
use tierwise_work::Part;

use crate::kernel::session::{NONE, Resume, Session};
use crate::kernel::simulation::Simulation;
use crate::program::prepared::Program;
use crate::scheduler::dispatch::{CLIENT, SERVER};

/// One thread of a client program.
#[derive(Debug, Default)]
pub(crate) struct ClientThread {
    /// Whom it serves.
    serves: Option<u32>,
    waiting: VecDeque<u32>,
    /// Since when it has been off its core.
    pub(crate) off_since: Nanos,
    /// How cold it was when it last left its core; see [`tierwise_work::CpuCost`].
    cold: f64,
}

/// The threads of all sessions' clients; tells each session its own. Further sets of sessions are further
/// connections of the same threads, but where each session has a thread of its own.
pub(crate) fn threads(program: &Program, sessions: &mut [Session]) -> Vec<ClientThread> {
    let mut served: BTreeMap<u32, u32> = BTreeMap::new();
    for client in program.sessions.iter().filter_map(|script| script.thread) {
        *served.entry(client).or_default() += 1;
    }
    let mut numbers: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for session in sessions {
        let Some(client) = program.sessions[session.script as usize].thread else {
            continue;
        };
        let set = if served[&client] > 1 { 0 } else { session.set };
        let next = numbers.len() as u32;
        session.client = *numbers.entry((set, client)).or_insert(next);
    }
    numbers.iter().map(|_| ClientThread::default()).collect()
}

impl Simulation<'_> {
    /// A session's client has so much to do, if it has a thread that is known: once it has served the others
    /// that came before.
    pub(crate) fn want_client(&mut self, index: u32, base_ns: Nanos) {
        let client = self.session(index).client;
        let Some(thread) = self.clients.get_mut(client as usize) else {
            return self.want_core(index, CLIENT, base_ns, Resume::Next);
        };
        if thread.serves.is_none_or(|served| served == index) {
            thread.serves = Some(index);
            return self.want_core(index, CLIENT, base_ns, Resume::ClientDone);
        }
        thread.waiting.push_back(index);
        self.session(index).resume = Resume::Again;
        self.does(index, Part::Client);
        self.leave_core(index);
    }

    /// A client's thread has done what one session asked for; it goes on with the next, on the core that it has.
    pub(crate) fn client_done(&mut self, index: u32) {
        let client = self.session(index).client;
        let thread = &mut self.clients[client as usize];
        thread.serves = thread.waiting.pop_front();
        let Some(next) = thread.serves else {
            return self.proceed(index);
        };
        let core = std::mem::replace(&mut self.session(index).core, NONE);
        self.proceed(index);
        let session = self.session(next);
        (session.core, session.thread) = (core, CLIENT);
        self.resume(next);
    }

    /// Since when the thread of a session that is to run has been off its core.
    pub(crate) fn off_since(&mut self, index: u32) -> Nanos {
        let session = self.session(index);
        let (thread, client, own) = (session.thread, session.client, session.off_since);
        match self.clients.get(client as usize) {
            Some(shared) if thread == CLIENT => shared.off_since,
            _ => own[thread],
        }
    }

    /// How cold the thread of a session is that is to run.
    pub(crate) fn cold(&mut self, index: u32) -> &mut f64 {
        let session = &mut self.sessions[index as usize];
        match self.clients.get_mut(session.client as usize) {
            Some(shared) if session.thread == CLIENT => &mut shared.cold,
            _ => &mut session.cold[session.thread],
        }
    }

    /// The thread of a session leaves its core now.
    pub(crate) fn goes_off(&mut self, index: u32) {
        let now = self.now;
        let session = self.session(index);
        let (thread, client) = (session.thread, session.client);
        session.off_since[thread] = now;
        if thread != SERVER
            && let Some(shared) = self.clients.get_mut(client as usize)
        {
            shared.off_since = now;
        }
    }
}
