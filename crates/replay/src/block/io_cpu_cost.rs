//! What requests to a device cost the processors beside the session that asks: the kernel's threads for block
//! devices and file systems, and the server of an emulated disk.
//!
//! Sources: the recording's own figures (docs/work.md); crates/disk/src/service.rs: a thread with real-time
//! priority gives the answers, and spins before each. Not modelled: which of storage's threads does what, so
//! nothing but the cores limits how many requests they serve at a time.

use tierwise_device::{Nanos, Op, Request};
use tierwise_work::{RequestCost, StorageCost, spin_ns};

use crate::api::scenario::{EmulatedPath, Scenario};
use crate::program::prepared::Program;

/// What a request to a real device costs beside its sender: the interrupt and what is done in it. Assumed: the kernel's
/// whole stack takes about as long as the quickest devices do, since it almost doubles their access times (Zhong and
/// others, XRP, OSDI 2022), and next to all of it is the sender's own time. For recordings of emulated disks, whose
/// kernel threads work for the emulation.
const PLAIN: RequestCost = RequestCost {
    request_ns: 2_000.0,
    kib_ns: 0.0,
    idle_ns: 0.0,
};

/// How much of what a write's bytes cost is spent where there can be one write at a time: in the store, not in reading
/// them from the kernel. Measured: the server's 1.6 to 1.7 s for 246 MB took 1.2 s, on two quiet days.
const STORE_SHARE: f64 = 0.7;

/// What one request costs on a core.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestCosts {
    /// Until it comes to the store, or to its device.
    pub(crate) before_ns: Nanos,
    /// Meanwhile, on another core.
    pub(crate) aside_ns: Nanos,
    /// Then in the store, which takes one at a time.
    pub(crate) store_ns: Nanos,
    /// Between its device's end and its answer.
    pub(crate) after_ns: Nanos,
}

/// How a request comes to its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPath {
    /// At once. What it costs the processors happens aside, or is contained in observed times.
    Direct,
    /// To an emulated disk: when storage's threads have spent on it what it costs.
    EmulatedThreads,
    /// The same where that cost is not known: when the path has taken its time.
    EmulatedDelay,
}

/// The costs of one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoCpuCost {
    cost: StorageCost,
    request: RequestCost,
    /// Whether a server spins before its answers.
    spins: bool,
    pub(crate) path: RequestPath,
    /// What the emulation makes good of the path: answers are given so much earlier.
    pub(crate) path_credit_ns: Nanos,
    /// Whether what the kernel writes of its own accord waits for flushes.
    pub(crate) serial_flush: bool,
    cpu_speed: f64,
    last_sent: Nanos,
    last_answer: Nanos,
}

impl IoCpuCost {
    /// Of the device of an index in a scenario.
    pub(crate) fn new(program: &Program, scenario: &Scenario, index: usize) -> Self {
        let cost = program.work.storage.unwrap_or_default();
        let emulated = match scenario.devices.get(index) {
            Some(Some(_)) => scenario.live.is_some(),
            _ => matches!(program.profiles.get(index), Some(Some(_))),
        };
        let known = program.work.storage.is_some();
        let was_emulated = program.profiles.iter().any(Option::is_some);
        let (kernel, server) = match (emulated, was_emulated && known) {
            (true, _) => (cost.kernel, cost.server),
            (false, true) => (PLAIN, RequestCost::default()),
            (false, false) => (cost.kernel, RequestCost::default()),
        };
        // What stays on its emulated disk keeps the path to it, also where others go to real devices.
        let live = (emulated && !scenario.empirical_devices)
            .then(|| scenario.live.unwrap_or(EmulatedPath::USUAL));
        Self {
            cost,
            request: RequestCost {
                request_ns: kernel.request_ns + server.request_ns,
                kib_ns: kernel.kib_ns + server.kib_ns,
                idle_ns: kernel.idle_ns + server.idle_ns,
            },
            spins: emulated && known,
            path: match live {
                None => RequestPath::Direct,
                Some(_) if known => RequestPath::EmulatedThreads,
                Some(_) => RequestPath::EmulatedDelay,
            },
            path_credit_ns: live.map_or(0, |live| live.path_ns),
            serial_flush: live.is_some_and(|live| live.serial_flush),
            cpu_speed: scenario.cpu_speed,
            last_sent: 0,
            last_answer: 0,
        }
    }

    /// What a request that is sent now costs on a core, on the way to its device and back.
    pub(crate) fn costs(&mut self, now: Nanos, request: &Request) -> RequestCosts {
        let apart_ns = now - std::mem::replace(&mut self.last_sent, now);
        let request_ns = self.request.of(0, apart_ns) / self.cpu_speed;
        let bytes_ns = self.request.of(request.sectors, apart_ns) / self.cpu_speed - request_ns;
        let path_ns = self.cost.before_ns(request.op == Op::Read, apart_ns) / self.cpu_speed;
        let (before_ns, store_ns, after_ns) = match (self.path, request.op) {
            (RequestPath::EmulatedThreads, Op::Read) => (path_ns, 0.0, bytes_ns),
            (RequestPath::EmulatedThreads, _) => {
                let store_ns = bytes_ns * STORE_SHARE;
                (path_ns + bytes_ns - store_ns, store_ns, 0.0)
            }
            _ => (0.0, 0.0, 0.0),
        };
        let all_ns = request_ns + bytes_ns;
        RequestCosts {
            before_ns: before_ns as Nanos,
            aside_ns: (all_ns - before_ns - store_ns - after_ns).max(0.0) as Nanos,
            store_ns: store_ns as Nanos,
            after_ns: after_ns as Nanos,
        }
    }

    /// Time that the server spins before it answers a request that came to it at an instant.
    pub(crate) fn spin_ns(&mut self, now: Nanos, came_at: Nanos) -> Nanos {
        let waits_from = self.last_answer.max(came_at);
        self.last_answer = now;
        if self.spins {
            spin_ns(now - waits_from)
        } else {
            0
        }
    }
}
