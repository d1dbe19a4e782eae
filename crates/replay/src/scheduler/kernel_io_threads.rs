//! I/O threads of the kernel and of an emulated disk's server, on cores.
//!
//! Sources: crates/disk (readers and the loop device's workers are ordinary threads; the thread that completes
//! requests has real-time priority). Cost of requests: `block/io_cpu_cost.rs`.

use crate::block::in_flight::CpuCharge;
use crate::kernel::events::Event;
use crate::kernel::session::{Resume, SessionState};
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// Runs I/O threads for all processor time charged since the last call.
    pub(crate) fn run_io_threads(&mut self) {
        while let Some((charge, cost_ns)) = self.storage.next_charge() {
            if let CpuCharge::FixedDelay(request) = charge {
                self.events
                    .push(self.now + cost_ns, Event::PathDone(request));
                continue;
            }
            let index = self.idle_io_thread();
            let session = self.session(index);
            session.resume = Resume::IoThreadDone(charge);
            session.pending_ns = cost_ns.max(1);
            self.start_or_enqueue(index);
        }
    }

    /// An idle I/O thread, or a new one.
    pub(crate) fn idle_io_thread(&mut self) -> u32 {
        self.idle_io_threads.pop().unwrap_or_else(|| {
            let program_index = self.program.background_load;
            self.sessions
                .push(SessionState::new(program_index, 0, false));
            self.sessions.len() as u32 - 1
        })
    }

    /// An I/O thread has run for a request.
    pub(crate) fn io_thread_done(&mut self, index: u32, charge: CpuCharge) {
        self.leave_core(index);
        self.idle_io_threads.push(index);
        match charge {
            CpuCharge::BeforeDevice(request) => self.storage.cpu_spent(self.now, request),
            CpuCharge::Store(request) => self.storage.store_done(self.now, request),
            CpuCharge::AfterDevice(request) => {
                self.progress.note_completions(self.now, 1);
                let job = self.storage.complete(self.now, request);
                self.request_done(job);
            }
            CpuCharge::Concurrent | CpuCharge::FixedDelay(_) => {}
        }
    }
}
