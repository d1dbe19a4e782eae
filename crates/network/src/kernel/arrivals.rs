//! What starts transactions and turns: arrivals in an open loop, and the times of background sessions.

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_work::{TimeCategory, TurnPace};

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::TaskHandle;

/// Separates the random numbers of arrivals from a seed's other ones.
const STREAM: u64 = 0xa881_7a15;

/// Open loop: transactions arrive at random (a Poisson process), whether earlier ones are done or not. The sessions of
/// the recording serve them, one at a time each; a transaction waits if no session is idle.
#[derive(Debug)]
pub(crate) struct OpenLoopArrivals {
    random: SplitMix,
    mean_gap_ns: f64,
    /// Arrival times of the transactions that wait for a session.
    backlog: VecDeque<Nanos>,
    /// Idle sessions, the longest idle first.
    idle: VecDeque<TaskId>,
}

impl OpenLoopArrivals {
    pub(crate) fn new(rate_per_s: f64, seed: u64) -> Self {
        Self {
            random: SplitMix::new(seed ^ STREAM),
            mean_gap_ns: 1e9 / rate_per_s,
            backlog: VecDeque::new(),
            idle: VecDeque::new(),
        }
    }

    /// Time until the next arrival: exponential.
    fn gap_ns(&mut self) -> Nanos {
        let uniform = (self.random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - uniform).ln() * self.mean_gap_ns) as Nanos
    }

    /// Number of transactions that wait for a session.
    pub(crate) fn waiting(&self) -> u64 {
        self.backlog.len() as u64
    }
}

impl Machine<'_> {
    /// A transaction arrives: an idle session starts it at once. Returns the time until the next arrival.
    fn arrive(&mut self) -> Option<Nanos> {
        let now = self.clock.now();
        let arrivals = self.arrivals.as_mut()?;
        let gap_ns = arrivals.gap_ns();
        match arrivals.idle.pop_front() {
            None => arrivals.backlog.push_back(now),
            Some(session) => {
                self.task(session).transaction_began = now;
                self.set_activity(session, TimeCategory::Runnable);
                self.clock.wake(session);
            }
        }
        Some(gap_ns)
    }

    /// Whether a session is idle; else it serves a transaction that waited, or there are no arrivals.
    pub(crate) fn must_await_arrival(&mut self, session: TaskId) -> bool {
        let Some(arrivals) = self.arrivals.as_mut() else {
            return false;
        };
        let arrived = arrivals.backlog.pop_front();
        match arrived {
            Some(arrived) => self.task(session).transaction_began = arrived,
            None => arrivals.idle.push_back(session),
        }
        arrived.is_none()
    }

    /// Whether a client's own time is left out: arrivals decide when its next transaction begins.
    pub(crate) fn skips_think_time(&mut self, task: TaskId) -> bool {
        self.arrivals.is_some() && self.task(task).between_transactions
    }

    /// Starts the turns that are due after this number of transactions.
    pub(crate) fn begin_due_by_work(&mut self) {
        let done = self.metrics.all_transactions();
        let clock = &mut self.clock;
        let due = self.due_by_work.extract_if(.., |due| due.0 <= done);
        due.for_each(|due| clock.wake(due.1));
    }
}

impl TaskHandle<'_> {
    /// Lets transactions arrive.
    pub(crate) async fn bring_transactions(self) {
        let first = self
            .machine()
            .arrivals
            .as_mut()
            .map(OpenLoopArrivals::gap_ns);
        let Some(mut gap_ns) = first else { return };
        loop {
            self.sleep(gap_ns, TimeCategory::Sleep).await;
            let next_ns = self.machine().arrive();
            let Some(next_ns) = next_ns else { return };
            gap_ns = next_ns;
        }
    }

    /// Waits for the start of a background session's turn: at the recorded time, or after the recorded number of
    /// transactions; `start` is that of the recorded turn, which recurs each `round`.
    pub(crate) async fn await_turn(&self, pace: TurnPace, start: u64, round: u64) {
        if pace == TurnPace::Work {
            let at = start + round * self.program.period_transactions();
            self.machine().due_by_work.push((at, self.id));
            self.machine().begin_due_by_work();
            return self.block(TimeCategory::Sleep).await;
        }
        let at = start + round * self.program.period_ns();
        self.sleep_until(at, TimeCategory::Sleep).await;
    }
}
