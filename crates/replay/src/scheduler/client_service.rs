//! Sessions whose clients' threads serve others too: who is served, who waits.

use tierwise_device::Nanos;
use tierwise_work::Part;

use crate::kernel::session::{CLIENT, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// A session's client has so much to do, if it has a thread that is known: once it has served the others
    /// that came before.
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
        self.set_activity(index, Part::Client);
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
    pub(crate) fn coldness(&mut self, index: u32) -> &mut f64 {
        let session = &mut self.sessions[index as usize];
        match self.clients.get_mut(session.client as usize) {
            Some(shared) if session.thread == CLIENT => &mut shared.coldness,
            _ => &mut session.coldness[session.thread],
        }
    }

    /// The thread of a session leaves its core now.
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
