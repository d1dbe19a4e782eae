//! Open loop: transactions arrive at random, whether earlier ones are done or not.
//!
//! The sessions of the recording serve them, one at a time each; a transaction waits if no session is idle.

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_work::TimeCategory;

use crate::kernel::events::Event;
use crate::kernel::simulation::Simulation;

/// Separates the random numbers of arrivals from a seed's other ones.
const STREAM: u64 = 0xa881_7a15;

/// Arrivals of a Poisson process, and the idle sessions.
#[derive(Debug)]
pub(crate) struct Arrivals {
    random: SplitMix,
    mean_gap_ns: f64,
    /// Arrival times of the transactions that wait for a session.
    backlog: VecDeque<Nanos>,
    /// Idle sessions, the longest idle first.
    idle: VecDeque<u32>,
}

impl Arrivals {
    pub(crate) fn new(rate_per_s: f64, seed: u64) -> Self {
        Self {
            random: SplitMix::new(seed ^ STREAM),
            mean_gap_ns: 1e9 / rate_per_s,
            backlog: VecDeque::new(),
            idle: VecDeque::new(),
        }
    }

    /// Time until the next arrival: exponential.
    pub(crate) fn gap_ns(&mut self) -> Nanos {
        let uniform = (self.random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - uniform).ln() * self.mean_gap_ns) as Nanos
    }

    /// Number of transactions that wait for a session.
    pub(crate) fn waiting(&self) -> u64 {
        self.backlog.len() as u64
    }

    /// A session is idle from the beginning.
    pub(crate) fn add_idle(&mut self, session: u32) {
        self.idle.push_back(session);
    }
}

impl Simulation<'_> {
    /// A transaction arrives: an idle session starts it at once.
    pub(crate) fn arrive(&mut self) {
        let now = self.now;
        let Some(arrivals) = &mut self.arrivals else {
            return;
        };
        let next = now + arrivals.gap_ns();
        let session = arrivals.idle.pop_front();
        if session.is_none() {
            arrivals.backlog.push_back(now);
        }
        self.events.push(next, Event::Arrival);
        if let Some(index) = session {
            self.session(index).transaction_began = now;
            self.set_activity(index, TimeCategory::Runnable);
            self.resume(index);
        }
    }

    /// A session has ended a transaction; returns whether another one waits for it.
    pub(crate) fn await_arrival(&mut self, index: u32) -> bool {
        let Some(arrivals) = &mut self.arrivals else {
            return true;
        };
        if let Some(arrived) = arrivals.backlog.pop_front() {
            self.session(index).transaction_began = arrived;
            return true;
        }
        arrivals.idle.push_back(index);
        self.set_activity(index, TimeCategory::Client);
        self.block(index)
    }

    /// Whether a client's own time is left out: arrivals decide when its next transaction begins.
    pub(crate) fn skips_think_time(&self, index: u32) -> bool {
        self.arrivals.is_some() && self.sessions[index as usize].between_transactions
    }
}
