//! What requests to a device cost the processors beside the session that asks: the kernel's threads for block
//! devices and file systems, and the server of an emulated disk.
//!
//! Sources: the recording's own figures (docs/work.md); crates/disk/src/service.rs: a thread with real-time
//! priority gives the answers, and spins before each. Not modelled: which of storage's threads does what, so
//! nothing but the cores limits how many requests they serve at a time.

use tierwise_device::Nanos;
use tierwise_work::{RequestCost, spin_ns};

use crate::Scenario;
use crate::program::Program;

/// The costs of one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toll {
    request: RequestCost,
    /// Whether a server spins before its answers.
    spins: bool,
    /// Whether a request is late where storage's threads were: not with observed times, which contain that.
    pub(crate) delays: bool,
    cpu_speed: f64,
    last_sent: Nanos,
    last_answer: Nanos,
}

impl Toll {
    /// Of the device of an index in a scenario.
    pub(crate) fn new(program: &Program, scenario: &Scenario, index: usize) -> Self {
        let cost = program.work.storage.unwrap_or_default();
        let emulated = match scenario.devices.get(index) {
            Some(Some(_)) => scenario.live.is_some(),
            _ => matches!(program.profiles.get(index), Some(Some(_))),
        };
        let known = program.work.storage.is_some();
        let server = if emulated {
            cost.server
        } else {
            RequestCost::default()
        };
        Self {
            request: RequestCost {
                request_ns: cost.kernel.request_ns + server.request_ns,
                kib_ns: cost.kernel.kib_ns + server.kib_ns,
            },
            spins: emulated && known,
            delays: emulated && known && scenario.live.is_some() && !scenario.as_observed,
            cpu_speed: scenario.cpu_speed,
            last_sent: 0,
            last_answer: 0,
        }
    }

    /// Time on a core for a request of so many sectors that is sent now.
    pub(crate) fn request_ns(&mut self, now: Nanos, sectors: u32) -> Nanos {
        let apart_ns = now - std::mem::replace(&mut self.last_sent, now);
        (self.request.of(sectors, apart_ns) / self.cpu_speed) as Nanos
    }

    /// Time that the server spins before it answers a request.
    pub(crate) fn spin_ns(&mut self, now: Nanos, sent_at: Nanos) -> Nanos {
        let waits_from = self.last_answer.max(sent_at);
        self.last_answer = now;
        if self.spins {
            spin_ns(now - waits_from)
        } else {
            0
        }
    }
}
