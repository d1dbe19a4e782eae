//! Threads of client programs: each serves its sessions one at a time, in the order of their requests.
//!
//! A program with many connections waits for all of them in one thread (`epoll_wait`) and handles the replies in
//! turn; other replies stay in their sockets meanwhile. The thread keeps its core as long as a session waits for it.

use std::collections::{BTreeMap, VecDeque};

use tierwise_device::Nanos;
use tierwise_work::TimeCategory;

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::{TaskHandle, TaskState};
use crate::program::Program;
use crate::stations::cores::CoreClaimant;

/// A thread of a client program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(u32);

/// The threads of all client programs: of each, the session it serves and those that wait for it.
#[derive(Debug)]
pub(crate) struct ClientThreads(Vec<(Option<TaskId>, VecDeque<TaskId>)>);

impl ClientThreads {
    /// Sets each session's own thread. Further copies of the sessions are further connections of the same threads,
    /// unless each session has a thread of its own.
    pub(crate) fn new(program: &Program, tasks: &mut [TaskState]) -> Self {
        let client_of = |session: u32| {
            let session = &program.sessions[session as usize];
            program.work.sessions[session.index].client
        };
        let mut served: BTreeMap<u32, u32> = BTreeMap::new();
        for client in (0..program.sessions.len() as u32).filter_map(client_of) {
            *served.entry(client).or_default() += 1;
        }
        let mut numbers: BTreeMap<(u32, u32), ClientId> = BTreeMap::new();
        for task in tasks {
            let Some(client) = task.session.and_then(client_of) else {
                continue;
            };
            let copy = if served[&client] > 1 { 0 } else { task.copy };
            let next = ClientId(numbers.len() as u32);
            task.client = Some(*numbers.entry((copy, client)).or_insert(next));
        }
        Self(vec![(None, VecDeque::new()); numbers.len()])
    }
}

impl TaskHandle<'_> {
    /// Runs the session's client. Where its thread is known, it first serves the sessions that came before.
    pub(crate) async fn run_client(&self, recorded_ns: Nanos) {
        let client = self.change(|task| task.client);
        let waits = client.is_some_and(|client| !self.machine().begin_service(client, self.id));
        if waits {
            self.block(TimeCategory::Client).await;
        }
        self.run(CoreClaimant::Client, recorded_ns).await;
        if let Some(client) = client {
            self.machine().end_service(client, self.id);
        }
    }
}

impl Machine<'_> {
    /// Whether a client's thread serves a session at once; else the session waits.
    fn begin_service(&mut self, client: ClientId, session: TaskId) -> bool {
        let (serves, waiting) = &mut self.clients.0[client.0 as usize];
        if serves.is_some() {
            waiting.push_back(session);
            return false;
        }
        *serves = Some(session);
        true
    }

    /// A client's thread has sent a session's request. It keeps its core for the next session that it serves.
    fn end_service(&mut self, client: ClientId, session: TaskId) {
        let (serves, waiting) = &mut self.clients.0[client.0 as usize];
        *serves = waiting.pop_front();
        if let Some(next) = *serves {
            let core = self.task(session).core.take();
            let task = self.task(next);
            (task.core, task.thread) = (core, CoreClaimant::Client);
            self.clock.wake(next);
        }
    }
}
