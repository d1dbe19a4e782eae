//! Client threads at work: the session a thread serves, and the sessions that wait for it.

use tierwise_device::Nanos;
use tierwise_work::TimeCategory;

use crate::kernel::session::{CLIENT, NONE, Resume};
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// A session's client needs a core. Where its thread is known, it first serves the sessions that came before.
    pub(crate) fn request_client(&mut self, index: u32, base_ns: Nanos) {
        let client = self.session(index).client;
        let Some(thread) = self.clients.get_mut(client as usize) else {
            return self.request_core(index, CLIENT, base_ns, Resume::ClientDone);
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

    /// A client's thread has sent a session's request. It keeps its core for the next session that it serves.
    pub(crate) fn client_done(&mut self, index: u32) {
        let client = self.session(index).client;
        let next = self.clients.get_mut(client as usize).and_then(|thread| {
            thread.serves = thread.waiting.pop_front();
            thread.serves
        });
        let Some(next) = next else {
            return self.proceed(index);
        };
        let core = std::mem::replace(&mut self.session(index).core, NONE);
        self.proceed(index);
        let session = self.session(next);
        (session.core, session.thread) = (core, CLIENT);
        self.resume(next);
    }
}
