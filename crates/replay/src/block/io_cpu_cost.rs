//! Processor time of requests beside the requesting session: the kernel's threads for block devices and file systems,
//! and an emulated disk's server.
//!
//! Sources: the recording's own figures (docs/reference/work-model.md); crates/disk/src/service.rs. Not
//! modelled: which thread does what, so only the cores limit how many requests are served at a time; that the
//! server spins before it answers.

use tierwise_device::{Nanos, Op, Request};
use tierwise_work::constants::STORE_SHARE;
use tierwise_work::{Mechanism, RequestCost, StorageCost};

use crate::api::scenario::Scenario;
use crate::program::prepared::Program;

/// Processor time of a request to a real device beside its sender's: the interrupt and its handling. Assumed: the
/// kernel's whole stack takes about as long as the fastest devices, since it almost doubles their access times (Zhong
/// et al., XRP, OSDI 2022), and nearly all of it is the sender's own time. Used for recordings of emulated disks,
/// whose kernel threads work for the emulation.
const PLAIN: StorageCost = StorageCost {
    kernel: RequestCost::each(2_000.0),
    server: RequestCost::each(0.0),
    path_ns: None,
};

/// Processor time of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestCosts {
    /// Before it arrives at the store or the device.
    pub(crate) before_ns: Nanos,
    /// Meanwhile, on another core.
    pub(crate) aside_ns: Nanos,
    /// In the store, which copies one request at a time.
    pub(crate) store_ns: Nanos,
    /// Between the device's completion and the server's.
    pub(crate) after_ns: Nanos,
}

/// The path of requests to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPath {
    /// No path: processor time is spent meanwhile, or is part of observed times.
    Direct,
    /// To an emulated disk, after the I/O threads' processor time.
    EmulatedThreads,
    /// To an emulated disk whose processor time is unknown, after a fixed delay.
    EmulatedDelay,
}

/// Processor time of one device's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoCpuCost {
    cost: StorageCost,
    request: RequestCost,
    pub(crate) path: RequestPath,
    /// Path latency that the emulation subtracts: requests complete so much earlier.
    pub(crate) path_credit_ns: Nanos,
    /// The share of a write's byte cost that one write at a time can use.
    store_share: f64,
    cpu_speed: f64,
    last_sent: Nanos,
}

impl IoCpuCost {
    /// For the device with this index in a scenario.
    pub(crate) fn new(program: &Program, scenario: &Scenario, index: usize) -> Self {
        let emulated = match scenario.devices.get(index) {
            Some(Some(_)) => scenario.live.is_some(),
            _ => matches!(program.profiles.get(index), Some(Some(_))),
        };
        let known = program.work.storage.is_some();
        let was_emulated = program.profiles.iter().any(Option::is_some);
        let recorded = program.work.storage.unwrap_or_default();
        let cost = match (emulated, was_emulated) {
            (true, true) => recorded,
            (true, false) if known => StorageCost::emulated(),
            (false, true) if known => PLAIN,
            _ => StorageCost {
                server: RequestCost::default(),
                ..recorded
            },
        };
        // Roles that stay on their emulated disk keep its path, even if others move to real devices.
        let through = !program.is_off(Mechanism::EmulatedPath);
        let live = (emulated && through && !scenario.empirical_devices)
            .then(|| scenario.live.unwrap_or_default());
        Self {
            cost,
            request: RequestCost {
                request_ns: cost.kernel.request_ns + cost.server.request_ns,
                kib_ns: cost.kernel.kib_ns + cost.server.kib_ns,
                idle_ns: cost.kernel.idle_ns + cost.server.idle_ns,
            },
            path: match live {
                None => RequestPath::Direct,
                Some(_) if known => RequestPath::EmulatedThreads,
                Some(_) => RequestPath::EmulatedDelay,
            },
            path_credit_ns: live
                .filter(|_| !program.is_off(Mechanism::PathCredit))
                .map_or(0, |live| live.path_ns),
            store_share: match program.is_off(Mechanism::SerialStore) {
                true => 0.0,
                false => STORE_SHARE.get(),
            },
            cpu_speed: scenario.cpu_speed,
            last_sent: 0,
        }
    }

    /// Processor time of a request sent now, on its way to the device and back.
    pub(crate) fn costs(&mut self, now: Nanos, request: &Request) -> RequestCosts {
        let apart_ns = now - std::mem::replace(&mut self.last_sent, now);
        let request_ns = self.request.of(0, apart_ns) / self.cpu_speed;
        let bytes_ns = self.request.of(request.sectors, apart_ns) / self.cpu_speed - request_ns;
        let path_ns = self.cost.before_ns(request.op == Op::Read, apart_ns) / self.cpu_speed;
        let (before_ns, store_ns, after_ns) = match (self.path, request.op) {
            (RequestPath::EmulatedThreads, Op::Read) => (path_ns, 0.0, bytes_ns),
            (RequestPath::EmulatedThreads, _) => {
                let store_ns = bytes_ns * self.store_share;
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
}
