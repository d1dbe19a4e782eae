//! Threads of clients that start together and are measured together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::client::{Client, Connector};
use crate::draw::Context;
use crate::error::LoadError;
use crate::plan::Plan;
use crate::report::{Report, Tally};
use crate::worker::{Lap, Orders, Worker};

/// Clients that one thread serves before another is started: few threads wake up less often.
const CLIENTS_PER_THREAD: usize = 64;

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After so many transactions, shared out equally among the clients.
    Transactions(u64),
    /// When this time is over; transactions under way are finished.
    Time(Duration),
}

/// A request to stop, which any thread can make.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ask whoever holds a copy to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Connected clients, ready to run again and again.
pub struct Pool<C> {
    plan: Arc<Plan>,
    clients: usize,
    workers: Vec<Worker<C>>,
}

impl<C: Client> Pool<C> {
    /// Connect `clients` clients and prepare their statements.
    ///
    /// # Errors
    /// If there is no client, a connection is refused, a statement cannot be prepared, or `stop` is set.
    pub fn connect<K>(
        connector: &K,
        plan: Plan,
        clients: usize,
        seed: u64,
        stop: &Stop,
    ) -> Result<Self, LoadError>
    where
        K: Connector<Client = C>,
    {
        if clients == 0 {
            return Err(LoadError::Start("0 clients".to_owned()));
        }
        let plan = Arc::new(plan);
        let threads = clients.div_ceil(CLIENTS_PER_THREAD).min(cores());
        let mut workers = Vec::with_capacity(threads);
        for thread in 0..threads {
            let mut worker = Worker::new()?;
            for client in (thread..clients).step_by(threads) {
                if stop.is_set() {
                    return Err(LoadError::Stopped);
                }
                let context = Context {
                    seed,
                    client: client as u64,
                    clients: clients as u64,
                };
                worker.connect(connector, &plan, context)?;
            }
            workers.push(worker);
        }
        Ok(Self {
            plan,
            clients,
            workers,
        })
    }

    /// Run all clients up to `limit`.
    ///
    /// # Errors
    /// The first failure of any client, after which, as after a stop, the connections are gone.
    pub fn run(&mut self, limit: Limit, stop: &Stop) -> Result<Report, LoadError> {
        let mut workers = std::mem::take(&mut self.workers);
        if workers.is_empty() {
            return Err(LoadError::Disconnected);
        }
        let start = Barrier::new(workers.len());
        let orders = Orders {
            plan: &self.plan,
            limit,
            clients: self.clients,
            start: &start,
            stop,
            abort: &Stop::default(),
        };
        let laps: Result<Vec<Lap>, LoadError> = thread::scope(|scope| {
            let threads: Vec<_> = workers
                .iter_mut()
                .map(|worker| scope.spawn(|| worker.run(&orders)))
                .collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().expect("a client thread does not panic"));
            first_failure(joined.collect())
        });
        let report = summarise(laps?, &self.plan);
        self.workers = workers;
        Ok(report)
    }
}

/// All laps, or the failure that came first: the others only stopped because of it.
fn first_failure(laps: Vec<Result<Lap, LoadError>>) -> Result<Vec<Lap>, LoadError> {
    let failed =
        |lap: &&Result<Lap, LoadError>| matches!(lap, Err(error) if *error != LoadError::Stopped);
    if let Some(Err(error)) = laps.iter().find(failed) {
        return Err(error.clone());
    }
    laps.into_iter().collect()
}

fn summarise(laps: Vec<Lap>, plan: &Plan) -> Report {
    let started_ns = laps.iter().map(|lap| lap.started_ns).min().unwrap_or(0);
    let ended_ns = laps.iter().map(|lap| lap.ended_ns).max().unwrap_or(0);
    let cpu_ns = laps.iter().map(|lap| lap.cpu_ns).sum();
    let mut total = Tally::new(plan.transactions.len());
    for lap in &laps {
        total.merge(&lap.tally);
    }
    total.report(plan, started_ns, ended_ns, cpu_ns)
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
