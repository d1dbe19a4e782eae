//! Client threads at work: which session a thread serves and which ones wait for it.

use tierwise_device::Nanos;
use tierwise_work::TimeCategory;

use crate::kernel::session::{CLIENT, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// A session's client needs a core. Where its thread is known, it first serves the sessions that came before.
    pub(crate) fn request_client(&mut self, index: u32, base_ns: Nanos) {
        let client = self.session(index).client;
        let Some(thread) = self.clients.get_mut(client as usize) else {
            return self.request_core(index, CLIENT, base_ns, Resume::Next);
        };
        if thread.serves.is_none_or(|served| served == index) {
            thread.serves = Some(index);
            return self.request_core(index, CLIENT, base_ns, Resume::ClientDone);
        }
        thread.waiting.push_back(index);
        self.session(index).resume = Resume::Retry;
        self.set_activity(index, TimeCategory::Client);
        self.leave_core(index);
    }

    /// A client's thread has served a session; it continues with the next one on the same core.
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

    /// When the session's current thread last left a core.
    pub(crate) fn off_since(&mut self, index: u32) -> Nanos {
        let session = self.session(index);
        let (thread, client, own) = (session.thread, session.client, session.off_since);
        match self.clients.get(client as usize) {
            Some(shared) if thread == CLIENT => shared.off_since,
            _ => own[thread],
        }
    }

    /// How cold the caches of the session's current thread are.
    pub(crate) fn coldness(&mut self, index: u32) -> &mut f64 {
        let session = &mut self.sessions[index as usize];
        match self.clients.get_mut(session.client as usize) {
            Some(shared) if session.thread == CLIENT => &mut shared.coldness,
            _ => &mut session.coldness[session.thread],
        }
    }

    /// Notes that a session's thread leaves its core now.
    pub(crate) fn note_off_core(&mut self, index: u32) {
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
