//! Client threads at work: the session a thread serves, and the sessions that wait for it.

use tierwise_device::Nanos;
use tierwise_work::TimeCategory;

use crate::kernel::session::{CLIENT, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;
use crate::program::operation::Operation;

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

    /// A client's thread has sent a session's request. It keeps its core while the session works: first it
    /// continues to run after the request, then it serves the next session.
    pub(crate) fn client_done(&mut self, index: u32) {
        let run_on_ns = self.take_run_on_ns(index);
        let client = self.session(index).client;
        if run_on_ns == 0 && self.next_served(client).is_none() {
            if let Some(thread) = self.clients.get_mut(client as usize) {
                thread.serves = None;
            }
            return self.proceed(index);
        }
        let run_on = self.idle_io_thread();
        let core = std::mem::replace(&mut self.session(index).core, NONE);
        self.cores.note_left(self.now, core);
        let coldness = self.cores.coldness(core);
        *coldness = self.program.work.cpu.run(run_on_ns as f64, *coldness).1;
        let carrier = self.session(run_on);
        (carrier.core, carrier.thread) = (core, CLIENT);
        self.proceed(index);
        if run_on_ns == 0 {
            return self.end_run_on(run_on, client);
        }
        let carrier = self.session(run_on);
        carrier.resume = Resume::ClientRanOn(client);
        (carrier.pending_ns, carrier.warmup_pending) = (run_on_ns, false);
        if !self.cores.must_yield(core) {
            return self.dispatch(run_on, core, 0);
        }
        self.cores.enqueue(core, run_on, true);
        self.leave_core(run_on);
    }

    /// Time that a session's client continues to run after the request just sent; moves past that operation.
    fn take_run_on_ns(&mut self, index: u32) -> Nanos {
        let session = &mut self.sessions[index as usize];
        let ops = &self.program.sessions[session.program_index as usize].ops;
        let Some(Operation::ClientRunOn { base_ns }) = ops.get(session.position as usize) else {
            return 0;
        };
        session.position += 1;
        (f64::from(*base_ns) / self.cpu_speed) as Nanos
    }

    /// The session that a client's thread serves next, if one waits.
    fn next_served(&self, client: u32) -> Option<u32> {
        self.clients.get(client as usize)?.waiting.front().copied()
    }

    /// A client's thread has finished running after a request, carried by the session `run_on`; it serves the
    /// next session on the same core.
    pub(crate) fn end_run_on(&mut self, run_on: u32, client: u32) {
        let core = std::mem::replace(&mut self.session(run_on).core, NONE);
        self.session(run_on).thread = SERVER;
        self.idle_io_threads.push(run_on);
        let next = self.clients.get_mut(client as usize).and_then(|thread| {
            thread.serves = thread.waiting.pop_front();
            thread.serves
        });
        let Some(next) = next else {
            self.cores.note_left(self.now, core);
            return self.dispatch_next(core);
        };
        let session = self.session(next);
        (session.core, session.thread) = (core, CLIENT);
        self.resume(next);
    }
}
